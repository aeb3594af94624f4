/* A writer of LevelDB: of a hundred values one is to be on the disk before the next one is put. */
#include <leveldb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(char *error)
{
    if (error == NULL)
        return;
    fprintf(stderr, "leveldb: %s\n", error);
    exit(1);
}

int main(int argc, char **argv)
{
    unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;
    leveldb_options_t *options = leveldb_options_create();
    leveldb_writeoptions_t *soon = leveldb_writeoptions_create();
    leveldb_writeoptions_t *now = leveldb_writeoptions_create();
    char *error = NULL, key[32], value[128];

    leveldb_options_set_create_if_missing(options, 1);
    leveldb_writeoptions_set_sync(now, 1);
    leveldb_t *db = leveldb_open(options, argv[1], &error);
    check(error);
    memset(value, 'x', sizeof value);
    for (unsigned long n = 0; n < count; n++) {
        int size = snprintf(key, sizeof key, "key:%lu", n * 7919 % 100003);

        leveldb_put(db, n % 100 == 99 ? now : soon, key, size, value, sizeof value, &error);
        check(error);
    }
    leveldb_close(db);
    return 0;
}
