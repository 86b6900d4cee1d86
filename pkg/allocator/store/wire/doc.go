// Package wire is the JSON of owners as the API server sends it: single objects, lists, and the events of a watch.
package wire
