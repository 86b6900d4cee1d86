// Package request sends single requests to the API server and tells their outcomes apart. Every request of package store goes through Send.
//
// A write has one of these outcomes:
//
//   - The server accepted it.
//   - ErrConflict: the object has changed. Read again and plan again.
//   - ErrAmbiguous: the write may still happen. Read again before anything else.
//   - ErrNotKept: the server accepted the write, and something in the cluster changed its content.
//   - ErrRefused: the server refuses the content.
//   - ErrGone: the object does not exist any more.
//   - *ForbiddenError: RBAC does not allow it. Repeating does not help.
//   - Any other error. Temporary reports whether repeating may help.
package request
