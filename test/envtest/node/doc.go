// Package node is the process node: a Kubernetes node whose pods run as plain
// processes of this machine, without root, containers or images. With package
// controlplane it makes a cluster on which the real binary runs under the real
// controllers. It plays the scheduler too: every pod without a node is bound to
// it.
//
// # What a pod gets
//
//   - Init containers in order, restartable ones (sidecars) gated by their
//     startup probe, then the containers, all as child processes. command and
//     args run as given, after $(VAR) expansion. image names nothing to pull;
//     Options.Images may map it to a program for containers without a command.
//   - The environment of the container's spec (values, fieldRefs, secretKeyRefs and limits), PATH, HOME,
//     TMPDIR, and KUBECONFIG if Options.Kubeconfig is set. It stands in for the
//     service account's token, whose path a process cannot have for itself.
//   - A loopback address of its own (127.x.y.z) as status.podIP, so that all pods
//     can listen on $(POD_IP) and one port. Nothing keeps a process from
//     listening on 0.0.0.0; a pod that does takes the port from all others.
//   - emptyDir and hostPath volumes. There is no mount namespace: where a
//     container's command, args, working directory, environment values or probe
//     commands contain one of its mountPaths as a path prefix, the real directory
//     is put in its place. Paths that a program has built in do not work.
//     Files of a downward API volume follow the pod. Volumes of other kinds are empty directories.
//   - "kubectl logs", without any of its flags.
//   - Startup and readiness probes: httpGet without TLS, and exec. A probe that fails restarts nothing.
//   - The life of a pod as the kubelet runs it: restart in place with back-off,
//     phases, conditions and container statuses, preStop commands, SIGTERM, the grace
//     period, SIGKILL, sidecars stopped last and in reverse, and the removal of
//     the pod object when all is over. Each container's end is reported when it
//     happens, also while the pod is terminating.
//
// With Options.Play a function lives the life of each pod, and no process runs: thousands of pods are played in one process.
//
// # What it is not
//
// Processes share the machine's file system, network and user. Resources,
// security contexts, other probes and hooks, readiness gates, ephemeral containers,
// configMap and secret volumes are not there. A container's first
// process is not PID 1: the default action of signals applies to it.
//
// The node sends no heartbeats, so the node lifecycle controller has to run with
// a long grace period, as it does in package controlplane.
//
// # Use
//
//	n, err := node.Start(ctx, cp.Config(), node.Options{ProbePeriod: 100 * time.Millisecond})
//	if err != nil { ... }
//	defer n.Stop()
//
// The package works on Linux only, like package process.
package node
