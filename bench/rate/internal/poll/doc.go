// Package poll is what a loop on one thread needs of Linux and nothing around it: epoll with
// waits shorter than a millisecond, reads and writes that tell the scheduler nothing since they never block,
// and what a thread has used of the processor. Elsewhere than on Linux it is empty.
//
// It allocates when a [Poller] is made, and not again.
package poll
