// Package publish shows a program its identity: a Dir publishes it as files in a shared directory. It is for package agent. The files are
// stable; this Go API is not.
//
// A reader never sees the id of one moment with the count of another. The file "id" cannot be opened while there is no id. The
// package decides nothing: it shows the identity that it is given, and it does not know how a program uses it.
package publish
