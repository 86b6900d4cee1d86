// Package pace decides how long a process waits before its turn comes. It is for idalloc's own packages; other programs
// must not rely on it.
//
// Thousands of pods may want to change one object at the same moment, and one write can serve all of them. So each
// pod waits for a random time. The time is longer the more pods there are, and the slower the API server answers.
// Most pods hear of another pod's write before their own turn comes.
//
// # The wait
//
// It is drawn from the truncated exponential distribution of J. Nonnenmacher and E. W. Biersack ("Scalable feedback for large groups",
// IEEE/ACM Transactions on Networking 7(3), 1999). For n pods and a scale p, the pace, it is in [0, lambda p] with lambda = ln n + 1 and
//
//	P(X <= x) = (e^(x/p) - 1) / (e^lambda - 1),   drawn as   x = p ln(1 + u (e^lambda - 1)),   u uniform in [0, 1)
//
// Because e^lambda = e n, about (e^(x/p) - 1)/e of the n timers have fired at x. So the first fires at about p ln(1 + e) = 1.3 p, however many
// there are. Let tau be the time from then until the other pods hear of the write. Then about 1 + 1.37 (e^(tau/p) - 1) pods plan in all, again
// for every n: 3.4 with p = tau, 9.8 with p = tau/2. A long pace costs time, a short one costs lists.
//
// tau is a read, two lists, a write and a watch event: about five requests. A pod knows how long its own read of the owner took, L. But a
// thousand pods that start at once share the server, so L is many times what one request needs, and as soon as all of them wait, the server is
// quick again. A pace of five times L would leave it without work. So the pace is the largest of three: L, what this process's last plan took,
// and 0.5 ms for each slot; and at most 1 s. When the timer has fired, the pod reads the owner again. That took L2. If 5 L2 is at most p, about
// three pods plan, and the pod continues. Otherwise something else keeps the server busy, and the pod waits once more with the pace 5 L2. lambda p
// ends at 10 s.
//
// The package reads no clock and makes no request. Callers measure and wait.
package pace
