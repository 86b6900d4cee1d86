package election

import (
	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// contest is a log that reports it as no error if another candidate created or took the lease first. client-go's elector reports an error.
type contest struct{ logr.LogSink }

// calm wraps the log in a contest.
func calm(log logr.Logger) logr.Logger {
	if sink := log.GetSink(); sink != nil {
		return log.WithSink(contest{sink})
	}
	return log
}

// Error implements logr.LogSink.
func (c contest) Error(err error, message string, pairs ...any) {
	if !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
		c.LogSink.Error(err, message, pairs...)
		return
	}
	if c.Enabled(0) {
		c.Info(0, "another candidate was first", append(pairs, "reason", err.Error())...)
	}
}
