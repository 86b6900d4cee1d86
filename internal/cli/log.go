package cli

import (
	"os"
	"strings"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/buffer"
	"go.uber.org/zap/zapcore"
	"golang.org/x/term"
	"k8s.io/klog/v2"

	"github.com/idalloc/idalloc/internal/sanitise"
)

// Log holds the flags of the log.
type Log struct {
	Format    string
	Verbosity int
}

// Bind adds the flags. levels describes what each verbosity shows.
func (l *Log) Bind(f *pflag.FlagSet, levels string) {
	f.StringVar(&l.Format, "log-format", "auto", "log as json or console; auto is console at a terminal")
	f.IntVarP(&l.Verbosity, "v", "v", 0, "verbosity of the log: "+levels)
}

// Logger returns a logger that writes to standard error. client-go's log also goes there. Errors are UsageErrors.
func (l *Log) Logger() (logr.Logger, error) {
	config := zap.NewProductionEncoderConfig()
	config.TimeKey, config.EncodeTime = "time", zapcore.RFC3339NanoTimeEncoder
	config.EncodeDuration = zapcore.StringDurationEncoder
	format := l.Format
	if format == "auto" {
		format = map[bool]string{true: "console", false: "json"}[term.IsTerminal(int(os.Stderr.Fd()))]
	}
	var encoder zapcore.Encoder
	switch format {
	case "json":
		encoder = zapcore.NewJSONEncoder(config)
	case "console":
		encoder = console{zapcore.NewConsoleEncoder(config)}
	default:
		return logr.Discard(), Usagef("--log-format %q: use auto, json or console", l.Format)
	}
	if l.Verbosity < 0 || l.Verbosity > 10 {
		return logr.Discard(), Usagef("-v %d: use 0 to 10", l.Verbosity)
	}
	log := zapr.NewLogger(zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(sanitise.Writer(os.Stderr))), zapcore.Level(-l.Verbosity))))
	klog.SetLogger(log.WithName("client-go"))
	return log, nil
}

// console keeps each message on one line. client-go's messages quote other texts, and the encoder writes messages unchanged.
type console struct{ zapcore.Encoder }

// Clone implements zapcore.Encoder.
func (c console) Clone() zapcore.Encoder { return console{c.Encoder.Clone()} }

// EncodeEntry implements zapcore.Encoder.
func (c console) EncodeEntry(e zapcore.Entry, fields []zapcore.Field) (*buffer.Buffer, error) {
	e.Message = strings.NewReplacer("\n", "␊", "\t", "␉").Replace(e.Message)
	return c.Encoder.EncodeEntry(e, fields)
}
