// Package splits explores every history of a Deployment that goes and comes while pods of its two ReplicaSets run and wait. It was deleted without them, so
// the garbage collector orphans one ReplicaSet after the other, and a Deployment of the same name or of another one adopts them one after the other. What
// controllers do follows decision.Decide and decision.Set.Freezes: the decisions that are shipped. It is exhaustive within budgets of faults.
//
// What a controller decides on may be old. It hears of each pod and of the Deployments at any time. It lists the ReplicaSets when a pass begins, and goes by
// that list for as long as the pass takes. Any free slot is proposed to any pod. Begin is sent at
// any time after T3 for as long as the pod's bytes stand. Two controllers may lead at once.
//
// T3 is one list here, of one moment. The package above says why two do no harm.
//
// A model that cannot fail shows nothing: without the freeze, the test must find a history that ends badly. What the rule says of names, and of locks that T3
// must cover, is held by cases of package decision: no history of this size ends badly without it.
package splits
