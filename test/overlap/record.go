package overlap

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// None is the id of a sample that showed none.
	None = -1
	// Suffix is what the names of logs end with.
	Suffix = ".log"

	noneText = "-"
	fields   = 6
)

// Record is one sample: at some moment between Before and After, Pod showed ID, Count and Token.
type Record struct {
	// Before and After are nanoseconds of the host's monotonic clock.
	Before, After int64
	// Pod and UID tell the holders apart: a pod may come back under its name. UID may be empty where names are not used again.
	Pod, UID string
	ID       int
	Count    int
	Token    int64
}

// Holder is what tells the holders apart: pod/UID, or the pod alone where there is no UID.
func (r Record) Holder() string {
	if r.UID == "" {
		return r.Pod
	}
	return r.Pod + "/" + r.UID
}

// String returns the line of the log: before, after, pod or pod/UID, id or "-", count, token.
func (r Record) String() string {
	id := noneText
	if r.ID != None {
		id = strconv.Itoa(r.ID)
	}
	return fmt.Sprintf("%d %d %s %s %d %d", r.Before, r.After, r.Holder(), id, r.Count, r.Token)
}

// Parse reads what String writes.
func Parse(line string) (Record, error) {
	part := strings.Fields(line)
	if len(part) != fields {
		return Record{}, fmt.Errorf("overlap: %d fields instead of %d in %q", len(part), fields, line)
	}
	var errs []error
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		errs = append(errs, err)
		return n
	}
	r := Record{Before: number(part[0]), After: number(part[1]), ID: None, Count: int(number(part[4])), Token: number(part[5])}
	r.Pod, r.UID, _ = strings.Cut(part[2], "/")
	if part[3] != noneText {
		r.ID = int(number(part[3]))
	}
	if err := errors.Join(errs...); err != nil {
		return Record{}, fmt.Errorf("overlap: %q: %w", line, err)
	}
	return r, nil
}

// Read returns the records of all logs in dir, those of one log in their order. A last line without
// its end is left out: its writer was killed, or is writing it.
func Read(dir string) ([]Record, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("overlap: %w", err)
	}
	var all []Record
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), Suffix) {
			continue
		}
		records, err := readLog(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, records...)
	}
	return all, nil
}

func readLog(path string) (records []Record, err error) {
	f, err := os.Open(path) //nolint:gosec // the caller names the directory
	if err != nil {
		return nil, fmt.Errorf("overlap: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	in := bufio.NewReader(f)
	for n := 1; ; n++ {
		line, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return nil, fmt.Errorf("overlap: %s: %w", path, err)
		}
		r, err := Parse(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		records = append(records, r)
	}
}

// Writer appends the samples of one pod to its log.
type Writer struct {
	// Interval is the time between two samples of Until.
	Interval time.Duration

	pod, uid string
	file     *os.File
}

// logMode lets the pod's other containers, which may run as other users, continue the log.
const logMode fs.FileMode = 0o666

// NewWriter opens the log of pod in dir, which must exist. A log that is there is continued. uid is the pod's, empty where it is not
// known: then a successor under the same name is taken for the same pod.
func NewWriter(dir, pod, uid string) (*Writer, error) {
	f, err := os.OpenFile(filepath.Join(dir, pod+Suffix), os.O_CREATE|os.O_APPEND|os.O_WRONLY, logMode) //nolint:gosec // read by the user who runs the test
	if err != nil {
		return nil, fmt.Errorf("overlap: %w: may the user of this process write to the probe directory?", err)
	}
	return &Writer{Interval: interval, pod: pod, uid: uid, file: f}, nil
}

// Sample calls look between two readings of the clock and appends what it returns, in one write, so
// that a kill at any moment leaves whole lines. look returns None as id while there is none.
func (w *Writer) Sample(look func() (id, count int, token int64)) error {
	r := Record{Pod: w.pod, UID: w.uid, Before: Now()}
	r.ID, r.Count, r.Token = look()
	r.After = Now()
	if _, err := w.file.WriteString(r.String() + "\n"); err != nil {
		return fmt.Errorf("overlap: %w", err)
	}
	return nil
}

// Close closes the log.
func (w *Writer) Close() error { return w.file.Close() }
