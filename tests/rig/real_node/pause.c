/* Holds a pod's namespaces open, and reaps what its containers leave when they share processes. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void down(int signum) { _exit(0); }

static void reap(int signum) {
  while (waitpid(-1, NULL, WNOHANG) > 0) {
  }
}

int main(void) {
  struct sigaction end = {0}, child = {0};
  end.sa_handler = down;
  child.sa_handler = reap;
  child.sa_flags = SA_NOCLDSTOP;
  sigaction(SIGINT, &end, NULL);
  sigaction(SIGTERM, &end, NULL);
  sigaction(SIGCHLD, &child, NULL);
  for (;;) pause();
}
