package main

import (
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
)

// logger returns a logger that writes to standard error. client-go's log goes there, too.
func (g *global) logger() (logr.Logger, error) {
	config := zap.NewProductionEncoderConfig()
	config.TimeKey, config.EncodeTime = "time", zapcore.RFC3339NanoTimeEncoder
	config.EncodeDuration = zapcore.StringDurationEncoder
	var encoder zapcore.Encoder
	switch g.logFormat {
	case "json":
		encoder = zapcore.NewJSONEncoder(config)
	case "console":
		encoder = zapcore.NewConsoleEncoder(config)
	default:
		return logr.Discard(), usageError{fmt.Errorf("--log-format %q: use json or console", g.logFormat)}
	}
	if g.verbosity < 0 || g.verbosity > 10 {
		return logr.Discard(), usageError{fmt.Errorf("-v %d: use 0 to 10", g.verbosity)}
	}
	level := zapcore.Level(-g.verbosity)
	log := zapr.NewLogger(zap.New(zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), level)))
	klog.SetLogger(log.WithName("client-go"))
	return log, nil
}
