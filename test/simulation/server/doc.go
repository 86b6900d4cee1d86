// Package server is a model of the Kubernetes API server and its etcd.
//
// It has one resourceVersion for all objects; JSON Patch, with the library that the real one uses and its 422; merge
// patch; metadata.generation as each kind keeps it; who wrote last, in managedFields; Leases; lists that are consistent or
// come from a cache that is behind; watches with bookmarks and initial events; 410; the size limit of annotations; and
// deletion with grace. test/envtest/differential compares it with a real one, through Standalone.
//
// It applies one request at a time. Its Host carries events and makes sure that nothing else happens while the server is
// called. The server knows the fields that idalloc or the simulated controllers look at, and no others.
package server
