package metrics

import (
	"io"

	"github.com/idalloc/idalloc/internal/meter"
)

// ContentType is the media type of the output of WriteText.
const ContentType = meter.ContentType

// Metrics counts what happens to one instance. New makes one. Its methods are safe for concurrent use, and none of them blocks for long.
type Metrics meter.Metrics

// New returns a Metrics with all counters at 0, for an instance that begins to wait for its first id.
func New() *Metrics { return (*Metrics)(meter.New()) }

// WriteText writes all metrics in the text format that Prometheus reads. The error is the writer's.
func (m *Metrics) WriteText(w io.Writer) error { return (*meter.Metrics)(m).WriteText(w) }
