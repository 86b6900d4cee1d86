// Package publish shows a program its identity: a Dir publishes it as files in a shared directory. Package agent uses it. The files are stable; this Go API is
// not.
//
// A reader never sees the id of one moment with the count of another. While there is no id, the file "id" cannot be opened. The package decides nothing: it
// shows the identity that it is given, and does not know how a program uses it.
package publish
