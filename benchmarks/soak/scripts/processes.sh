# Functions, pipes, traps and many children of a shell.
trap 'signals=$((signals + 1))' USR1
signals=0
total=0
for ((round = 0; round < 600; round++)); do
    words=$(for ((i = 0; i < 40; i++)); do echo "$((i * round % 17)) $i"; done | sort -n | head -5)
    while read -r first second; do
        total=$(((total * 31 + first * 7 + second) % 1000003))
    done <<<"$words"
    [[ $words =~ ([0-9]+)\ ([0-9]+) ]] && total=$((total + BASH_REMATCH[2]))
    kill -USR1 $$
    wait
done
echo "$total $signals"
