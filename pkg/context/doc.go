// Package context gives a Go program its id. Its API is stable: any program may rely on it. Import it as idcontext:
//
//	import idcontext "github.com/idalloc/idalloc/pkg/context"
//
// Most programs need only Run. It calls a function while this pod holds an id, ends the function's context when the id is
// revoked, and calls the function again with the next identity. The pod gives its slot away only after the function has
// returned, so two such functions never run under one id. Start is for programs with a loop of their own.
//
// The pod needs the environment variables POD_NAME and POD_NAMESPACE from the downward API; POD_UID is recommended. Its
// service account needs the Role in config/base, and in strict mode that in config/strict, too.
//
// There is one exception to mutual exclusion. If somebody force-deletes a pod, or deletes its Node object, while the node
// still runs the pod, another pod may get the id before this process notices. Options.FenceAfter (strict mode) closes this
// gap. Alternatively, pass Identity.Token as a fencing token to the systems that the work writes to. It fences an id,
// and not a share of the work that follows from id and count: see package identity.
package context
