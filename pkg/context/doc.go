// Package context gives a Go workload its id. Import it as idcontext:
//
//	import idcontext "github.com/idalloc/idalloc/pkg/context"
//
// Run is the simplest use: it calls a function while an id is held, ends the function's context
// when the id is revoked, and calls it again with the next identity. The slot is given away only
// after the function has returned, so two functions never run under one id. Start is for programs
// that have a loop of their own.
//
// The pod names itself by POD_NAME and POD_NAMESPACE from the downward API. Its service account
// needs the Role of config/base.
//
// What it does not promise: when a pod is force-deleted, or its Node object is deleted, while the
// node still runs it, another pod may get the id before this process notices. Pass Identity.Epoch
// as a fencing token to whatever the work writes to, if that must not happen. An epoch fences an id. It
// does not fence a share of the work that follows from id and count: see package identity.
package context
