# Fills a repository with the files of $SOURCES, changes them, and lets git do its work on it.
set -e
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
export GIT_CONFIG_NOSYSTEM=1
rm -rf repository copy
"$PROGRAM" init -q -b main repository
cd repository
cp -r "$SOURCES"/. .
for round in 1 2 3 4 5 6; do
    export GIT_AUTHOR_DATE="2001-01-0$round 00:00:00 +0000"
    export GIT_COMMITTER_DATE=$GIT_AUTHOR_DATE
    for file in *.c; do
        sed -i "$((round * 37))s/\$/ round $round/" "$file"
    done
    "$PROGRAM" add -A
    "$PROGRAM" commit -q -m "Round $round"
done
"$PROGRAM" -c pack.threads=2 repack -adfq --window=50
"$PROGRAM" fsck --full --strict --no-progress
"$PROGRAM" log -p --stat | sha256sum
"$PROGRAM" blame -w vdbe.c | sha256sum
"$PROGRAM" grep -n 'sqlite3[A-Z]' | sha256sum
"$PROGRAM" archive HEAD | sha256sum
"$PROGRAM" rev-list --objects --all | sha256sum
"$PROGRAM" clone -q . ../copy
cd ../copy
"$PROGRAM" checkout -q HEAD~3
"$PROGRAM" merge -q main
"$PROGRAM" status --short
"$PROGRAM" rev-parse HEAD
