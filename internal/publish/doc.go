// Package publish shows a workload its identity: as files in a shared directory (Dir) and over HTTP
// (Server, fed by a Hub).
//
// It promises that a reader never sees an id of one moment with a count of another, and that the file
// "id" cannot be opened while there is no id. It does not decide anything: it shows what it is given,
// and it does not know how a workload acts on it.
package publish
