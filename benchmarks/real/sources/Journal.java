import java.io.RandomAccessFile;

/** Writes into a file that may be lost and, every hundredth time, into one that may not. */
class Journal {
    public static void main(String[] arguments) throws Exception {
        byte[] entry = new byte[200];
        long count = Long.parseLong(arguments[0]);
        try (RandomAccessFile cache = new RandomAccessFile("cache", "rw");
                RandomAccessFile journal = new RandomAccessFile("journal", "rwd")) {
            for (long n = 0; n < count; n++) {
                if (n % 10_000 == 0) {
                    cache.seek(0);
                    journal.seek(0);
                }
                RandomAccessFile file = n % 100 == 99 ? journal : cache;
                entry[(int) (n % entry.length)]++;
                file.write(entry, 0, entry.length);
            }
        }
    }
}
