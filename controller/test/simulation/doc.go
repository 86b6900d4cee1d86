// Package simulation runs the shipped idalloc-controller through faults that a real cluster shows once in a year, in virtual time.
//
// It is test/simulation of the root module with controllers, and its flags are the same. This package adds the program that a controller runs: the
// manager, caches, queue and election of controller-runtime, with the reconciler and the decision as the command puts them together. They talk to the
// simulated API server through an http.RoundTripper. The root module stays without controller-runtime.
//
// # What is simulated besides
//
//   - One or two controllers, with or without election. They are killed, suspended, cut off and held up at each request like all processes, and
//     start again after a while. Renewals of their Lease are no steps.
//   - Pods behind the gate, as admission makes them. Their kubelet starts them once the gate is gone. The container's environment is what the
//     pod's annotation says at that moment, and its files follow changes.
//   - Policies that refuse what is written on some pods, and watches that are seconds behind.
//   - Evictions, with and without a budget, and deletions.
//   - Agents: pods that run the shipped allocator, and whose account may have pods and Leases alone. They divide partitions, and may be strict.
//   - Migrations: in some histories others lock for each other template: the controller, agents or peers. Rollouts and undos go there and back.
//     Some of these divide partitions, which gated pods do not.
//
// # What is checked
//
// Package checks judges what is stored and under what programs run, and never what a controller believes. To the promises of peers it adds:
//
//   - An agent is served as soon as a peer, as long as the controller hears what happens.
//   - A program begins with an id, and its files name no other one.
//   - No controller takes its lock from a pod that has begun.
//   - A pod does not stay behind its gate beside a slot that is free, or that it has.
//   - A pod that is available is not deleted past its budget.
//
// # What is not
//
// Strict pods beside gated ones, further kinds (--kind), paused Deployments and minReadySeconds.
package simulation
