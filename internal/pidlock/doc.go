// Package pidlock prevents two processes of one pod from claiming ids at the same time. Each would mistake the other's receipt on the pod for damage, and both
// would act under one id.
//
// It uses no file and sends no request. The containers of a pod share its network, and a name there belongs to the process that took it until that process
// ends. So a later process does not have to wait, such as watch after init, or a restarted container.
package pidlock
