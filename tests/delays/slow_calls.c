/* slow_calls FOLDER COMMAND…: runs the command; system calls of all programs below FOLDER that it, or what it
 * starts, runs take longer: those that make processes, threads and mappings, futexes and clocks. What a test
 * says of a program must hold on a machine where these cost that much.
 *
 * The kernel asks before each of these calls (seccomp's user notification), and is answered later. The filter is
 * inherited, so the programs are analysed as they are, and no debugger is needed. It forbids nothing, which
 * tests/debugger.py tells darc by SLOW_CALLS.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ANSWERERS 6 /* so many threads may wait at one time */

static const struct slow {
    int number;
    int microseconds;
} SLOW[] = {
    {SYS_fork, 3000},          {SYS_vfork, 3000},       {SYS_clone, 3000},
    {SYS_clone3, 3000},        {SYS_mmap, 200},         {SYS_munmap, 200},
    {SYS_mprotect, 200},       {SYS_futex, 100},        {SYS_clock_nanosleep, 200},
    {SYS_nanosleep, 200},      {SYS_clock_gettime, 50}, {SYS_gettimeofday, 50},
};
#define MANY (sizeof SLOW / sizeof *SLOW)

static void die(const char *what)
{
    fprintf(stderr, "slow_calls: %s: %s\n", what, strerror(errno));
    exit(127);
}

static int install(void)
{
    struct sock_filter filter[MANY + 3];
    size_t n = 0;

    filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                               offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < MANY; i++)
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SLOW[i].number,
                                                   MANY - i, 0);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    struct sock_fprog program = {.len = n, .filter = filter};

    if (geteuid() != 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        die("no_new_privs");
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

static void hand_over(int socket, int *fd, int is_sender)
{
    char byte = 0, space[CMSG_SPACE(sizeof *fd)] = {0};
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = space,
                             .msg_controllen = sizeof space};

    if (is_sender) {
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof *fd);
        memcpy(CMSG_DATA(head), fd, sizeof *fd);
        if (sendmsg(socket, &message, 0) < 0)
            die("sendmsg");
        return;
    }
    if (recvmsg(socket, &message, 0) <= 0 || CMSG_FIRSTHDR(&message) == NULL)
        exit(0);
    memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof *fd);
}

static int delay_of(const struct seccomp_notif *asked, const char *folder)
{
    char name[64], file[PATH_MAX];

    snprintf(name, sizeof name, "/proc/%u/exe", asked->pid);
    ssize_t size = readlink(name, file, sizeof file - 1);
    if (size < 0 || strncmp(file, folder, strlen(folder)))
        return 0;
    for (size_t i = 0; i < MANY; i++)
        if (SLOW[i].number == asked->data.nr)
            return SLOW[i].microseconds;
    return 0;
}

/* Until nobody is left that the filter stands over. */
static void answer(int listener, const char *folder)
{
    for (;;) {
        struct pollfd waits = {.fd = listener, .events = POLLIN};
        struct seccomp_notif asked = {0};

        if (poll(&waits, 1, -1) < 0 && errno != EINTR)
            exit(1);
        if (waits.revents & POLLHUP)
            exit(0);
        if (!(waits.revents & POLLIN) || ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked))
            continue; /* another one has it, or its thread is gone */
        int delay = delay_of(&asked, folder);
        struct timespec time = {.tv_nsec = delay * 1000L};
        if (delay)
            nanosleep(&time, NULL);
        struct seccomp_notif_resp said = {.id = asked.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
        ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &said);
    }
}

int main(int argc, char **argv)
{
    int sockets[2], listener;

    if (argc < 3) {
        fprintf(stderr, "usage: slow_calls FOLDER COMMAND...\n");
        return 127;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
        die("socketpair");
    pid_t child = fork();
    if (child < 0)
        die("fork");
    if (child == 0) { /* its child is nobody's that the command waits for */
        if (fork() != 0)
            _exit(0);
        setsid();
        close(sockets[0]);
        hand_over(sockets[1], &listener, 0);
        for (int i = 1; i < ANSWERERS; i++)
            if (fork() == 0)
                break;
        answer(listener, argv[1]);
    }
    waitpid(child, NULL, 0);
    close(sockets[1]);
    listener = install();
    if (listener < 0)
        die("seccomp");
    hand_over(sockets[0], &listener, 1);
    close(listener);
    close(sockets[0]);
    setenv("SLOW_CALLS", argv[1], 1);
    execvp(argv[2], argv + 2);
    die(argv[2]);
}
