// A store of documents: GET, PUT and a few commands in lines, a thread for each client, and a journal.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <unordered_map>
#include <vector>

namespace shop {

class Journal {
  public:
    explicit Journal(const char *path)
        : file_(open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600)) {}

    __attribute__((noinline)) void append(const std::string &line) {
        std::lock_guard<std::mutex> guard(lock_);
        size_t done = 0;
        while (done < line.size()) {
            ssize_t wrote = pwrite(file_, line.data() + done, line.size() - done, at_);
            if (wrote < 0) {
                if (errno != ENOSPC)
                    abort();
                wait_for_room();
                continue;
            }
            done += static_cast<size_t>(wrote);
            at_ += wrote;
        }
        if (at_ > kMost)
            at_ = 0;
        if (++lines_ % 8 == 0)
            fdatasync(file_);
    }

  private:
    // Somebody may make room; the journal begins anew, so that it takes none for now.
    __attribute__((noinline)) void wait_for_room() {
        usleep(15000);
        if (ftruncate(file_, 0))
            abort();
        at_ = 0;
    }

    static constexpr off_t kMost = 32 << 20;
    std::mutex lock_;
    int file_;
    off_t at_ = 0;
    unsigned lines_ = 0;
};

class Store {
  public:
    __attribute__((noinline)) std::string get(const std::string &key) {
        std::lock_guard<std::mutex> guard(lock_);
        auto found = documents_.find(key);
        return found == documents_.end() ? "" : found->second;
    }
    __attribute__((noinline)) void put(const std::string &key, const std::string &value) {
        std::lock_guard<std::mutex> guard(lock_);
        documents_[key] = value;
    }
    // All keys in order, which the lock is not held for but to copy them.
    __attribute__((noinline)) size_t inventory() {
        std::vector<std::string> keys;
        {
            std::lock_guard<std::mutex> guard(lock_);
            for (auto &one : documents_)
                keys.push_back(one.first);
        }
        std::sort(keys.begin(), keys.end());
        size_t length = 0;
        for (auto &key : keys)
            length += key.size();
        return length;
    }
    // A copy of everything, under the lock.
    __attribute__((noinline)) size_t snapshot(unsigned times) {
        std::lock_guard<std::mutex> guard(lock_);
        size_t sum = 0;
        for (unsigned time = 0; time < times; time++) {
            std::map<std::string, std::string> copy(documents_.begin(), documents_.end());
            sum += copy.size();
        }
        return sum;
    }

  private:
    std::mutex lock_;
    std::unordered_map<std::string, std::string> documents_;
};

Store store;
Journal *journal;

// Room for a large document, which is given back at once.
__attribute__((noinline)) size_t reserve(size_t bytes) {
    void *made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED)
        return 0;
    auto *room = static_cast<volatile char *>(made);
    for (size_t at = 0; at < bytes; at += 4096)
        room[at] = 1;
    munmap(made, bytes);
    return bytes;
}

__attribute__((noinline)) unsigned checksum(const std::string &text) {
    unsigned sum = 0;
    for (unsigned round = 0; round < 40; round++)
        for (char one : text)
            sum = sum * 31 + static_cast<unsigned char>(one);
    return sum;
}

__attribute__((noinline)) std::string answer(const std::string &line) {
    size_t first = line.find(' '), second = line.find(' ', first + 1);
    std::string verb = line.substr(0, first);
    std::string key = first == std::string::npos ? "" : line.substr(first + 1, second - first - 1);
    if (verb == "GET") {
        std::string value = store.get(key);
        return std::to_string(checksum(value)) + " " + value;
    }
    if (verb == "PUT") {
        std::string value = line.substr(second + 1);
        store.put(key, value);
        journal->append(line + "\n");
        return "stored " + std::to_string(checksum(value));
    }
    if (verb == "INVENTORY")
        return std::to_string(store.inventory());
    if (verb == "SNAPSHOT")
        return std::to_string(store.snapshot(static_cast<unsigned>(atoi(key.c_str()))));
    if (verb == "RESERVE")
        return std::to_string(reserve(static_cast<size_t>(atol(key.c_str())) << 20));
    return "what?";
}

__attribute__((noinline)) bool reply(int client, const std::string &text) {
    std::string line = text + "\n";
    return send(client, line.data(), line.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(line.size());
}

void serve(int client) {
    std::string waiting;
    char buffer[4096];
    for (ssize_t got; (got = recv(client, buffer, sizeof buffer, 0)) > 0;) {
        waiting.append(buffer, static_cast<size_t>(got));
        for (size_t end; (end = waiting.find('\n')) != std::string::npos;) {
            std::string line = waiting.substr(0, end);
            waiting.erase(0, end + 1);
            if (!reply(client, answer(line)))
                return;
        }
    }
    close(client);
}

} // namespace shop

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    shop::journal = new shop::Journal(argv[2]);
    for (unsigned n = 0; n < 10000; n++)
        shop::store.put("document:" + std::to_string(n * 7919 % 10000), std::string(200 + n % 50, 'x'));
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    strncpy(name.sun_path, argv[1], sizeof name.sun_path - 1);
    if (bind(listener, reinterpret_cast<sockaddr *>(&name), sizeof name) || listen(listener, 16))
        return 1;
    for (int client; (client = accept(listener, nullptr, nullptr)) >= 0;)
        std::thread(shop::serve, client).detach();
}
