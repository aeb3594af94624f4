// LevelDB behind a socket: GET, PUT, SCAN and FILL in lines, a thread for each client.
#include <cstdlib>
#include <cstring>
#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/write_batch.h>
#include <memory>
#include <mutex>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

static leveldb::DB *db;
static leveldb::Options options;
static std::string folder;
static std::mutex counters;
static unsigned long reads, writes;

__attribute__((noinline)) static void count(unsigned long &which) {
    std::lock_guard<std::mutex> guard(counters);
    which++;
}

// What an operator asks for: both counters of one moment, and how large the files are then.
__attribute__((noinline)) static std::string statistics(int rounds) {
    std::lock_guard<std::mutex> guard(counters);
    uint64_t size = 0;
    for (int round = 0; round < rounds; round++) {
        leveldb::Range all("", "~");
        db->GetApproximateSizes(&all, 1, &size);
    }
    return std::to_string(reads) + " " + std::to_string(writes) + " " + std::to_string(size);
}

__attribute__((noinline)) static std::string scan(const std::string &from, int most) {
    std::unique_ptr<leveldb::Iterator> it(db->NewIterator(leveldb::ReadOptions()));
    size_t sum = 0;
    it->Seek(from);
    for (int n = 0; n < most && it->Valid(); n++, it->Next())
        sum += it->value().size();
    return std::to_string(sum);
}

// Many documents in one batch, which is made in memory first.
__attribute__((noinline)) static std::string draft(long megabytes) {
    std::string value(1 << 20, 'y');
    leveldb::WriteBatch batch;
    for (long n = 0; n < megabytes; n++)
        batch.Put("draft:" + std::to_string(n), value);
    return std::to_string(batch.ApproximateSize());
}

__attribute__((noinline)) static std::string answer(const std::string &line) {
    size_t first = line.find(' '), second = line.find(' ', first + 1);
    std::string verb = line.substr(0, first);
    std::string key = first == std::string::npos ? "" : line.substr(first + 1, second - first - 1);
    if (verb == "GET") {
        count(reads);
        std::string value;
        return db->Get(leveldb::ReadOptions(), key, &value).ok() ? value : "none";
    }
    if (verb == "PUT") {
        count(writes);
        leveldb::WriteOptions how;
        how.sync = true;
        if (!db->Put(how, key, line.substr(second + 1)).ok())
            return "failed";
        return "stored";
    }
    if (verb == "SCAN")
        return scan(key, atoi(line.c_str() + second + 1));
    if (verb == "DRAFT")
        return draft(atol(key.c_str()));
    if (verb == "STATISTICS")
        return statistics(atoi(key.c_str()));
    return "what?";
}

static void serve(int client) {
    std::string waiting;
    char buffer[4096];
    for (ssize_t got; (got = recv(client, buffer, sizeof buffer, 0)) > 0;) {
        waiting.append(buffer, static_cast<size_t>(got));
        for (size_t end; (end = waiting.find('\n')) != std::string::npos;) {
            std::string line = answer(waiting.substr(0, end)) + "\n";
            waiting.erase(0, end + 1);
            if (send(client, line.data(), line.size(), MSG_NOSIGNAL) < 0)
                return;
        }
    }
    close(client);
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    folder = argv[2];
    options.create_if_missing = true;
    options.block_cache = leveldb::NewLRUCache(64 << 20);
    if (!leveldb::DB::Open(options, folder, &db).ok())
        return 1;
    for (int n = 0; n < 50000; n++)
        db->Put(leveldb::WriteOptions(), "key:" + std::to_string(n), std::string(100, 'x'));
    db->CompactRange(nullptr, nullptr);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    strncpy(name.sun_path, argv[1], sizeof name.sun_path - 1);
    if (bind(listener, reinterpret_cast<sockaddr *>(&name), sizeof name) || listen(listener, 16))
        return 1;
    for (int client; (client = accept(listener, nullptr, nullptr)) >= 0;)
        std::thread(serve, client).detach();
}
