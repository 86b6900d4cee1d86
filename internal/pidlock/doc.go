// Package pidlock keeps two processes of one pod from claiming ids at the same time. Each would take the receipt that the other writes on
// their pod for damage, and both would act under one id.
//
// It has no file and sends no request. The containers of a pod share its network, and a name there belongs to the process that took it, until
// the process ends. So a process that follows another one, as watch follows init, or a container that was restarted, is not held up.
package pidlock
