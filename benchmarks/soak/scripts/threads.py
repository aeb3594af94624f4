"""Four threads that compress, hash and raise exceptions."""

import hashlib
import queue
import threading
import zlib

NUMBERS = 5000
jobs: "queue.Queue[int | None]" = queue.Queue()
done: dict[int, str] = {}


def work() -> None:
    """Works until there is a ``None``."""
    while (number := jobs.get()) is not None:
        data = bytes((number * i) % 251 for i in range(20000))
        packed = zlib.compress(data, 9)
        assert zlib.decompress(packed) == data
        try:
            int(f"x{number}")
        except ValueError as error:
            done[number] = hashlib.sha256(packed + str(error).encode()).hexdigest()


threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for number in range(NUMBERS):
    jobs.put(number)
for _ in threads:
    jobs.put(None)
for thread in threads:
    thread.join()
text = "".join(done[number] for number in sorted(done))
print(len(done), hashlib.sha256(text.encode()).hexdigest())
