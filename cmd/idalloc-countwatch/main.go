// Command idalloc-countwatch exits with code 42 when a file shows a new count. A container restart rule for that code then restarts all containers of the pod.
// It is a native sidecar of pods with the annotation idalloc.dev/on-count-change: restart, and needs no token.
//
//	idalloc-countwatch FILE SEEN
//
// FILE is in a volume of the downward API. SEEN is in an emptyDir, and holds the count with which the pod's containers started.
package main

import (
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// restart is the exit code of the container restart rule.
	restart = 42
	// least is the minimum time between two restarts. Kubernetes has no back-off for a restart of all containers.
	least = 10 * time.Second
	// late is how long the file may show an older count than the variable of a new pod. A kubelet updates it within 90 seconds.
	late = 2 * time.Minute
)

func main() {
	runtime.GOMAXPROCS(1) // each processor of Go's runtime has its own caches
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt) // the first process of a container has no default for SIGTERM
	const usage = "Usage: idalloc-countwatch FILE SEEN"
	switch {
	case len(os.Args) == 2 && os.Args[1] == "--help":
		end(usage, 0)
	case len(os.Args) != 3:
		end(usage, 2)
	}
	was, is, err := watch(os.Args[1], os.Args[2], os.Getenv("IDALLOC_COUNT"), stop)
	switch {
	case err != nil:
		end(err.Error(), 1)
	case is != "":
		end("the count changed from "+was+" to "+is+": all containers of the pod start again", restart)
	}
}

func end(message string, code int) {
	_, _ = os.Stderr.WriteString(message + "\n")
	os.Exit(code)
}

// watch blocks until the containers should restart, and returns the old and the new count. If it is stopped, it returns no count.
func watch(file, path, started string, stop <-chan os.Signal) (was, is string, err error) {
	news, err := fsnotify.NewWatcher()
	if err != nil {
		return "", "", err
	}
	defer func() { _ = news.Close() }()
	if err := news.Add(filepath.Dir(file)); err != nil { // the kubelet replaces a link in the folder
		return "", "", err
	}
	for {
		count, err := read(file)
		if err != nil {
			return "", "", err
		}
		seen, err := recall(path, started, count)
		if err != nil {
			return "", "", err
		}
		due, left := seen.due(count, time.Now())
		if due {
			return seen.count, count, note(path, count)
		}
		var wait <-chan time.Time
		if left > 0 {
			wait = time.After(left)
		}
		select {
		case <-stop:
			return "", "", nil
		case <-wait:
		case <-news.Events:
		case err := <-news.Errors:
			return "", "", err
		}
	}
}

// seen is the count with which the pod's containers started, and the time since when it is known.
type seen struct {
	count string
	at    time.Time
}

// due reports whether the containers should restart now, or how long to wait before the next check. With 0, wait until the file changes.
//
// The count with which this container itself started does not matter: if only this container was restarted, the others may have an older count.
func (s seen) due(count string, now time.Time) (due bool, left time.Duration) {
	if count == "" || s.count == "" || count == s.count {
		return false, 0
	}
	left = min(s.at.Add(least).Sub(now), late+least) // the clock may have gone back
	return left <= 0, max(0, left)
}

// recall reads what note wrote. If there is nothing yet, the pod is new: its other containers start after this one, with its count or a later one. The file may
// be older than that, and then catches up. Or it is newer, and the containers must restart in the end.
func recall(path, started, count string) (seen, error) {
	info, err := os.Stat(path) //nolint:gosec // the pod says which
	if errors.Is(err, fs.ErrNotExist) {
		if started = number(started); started == "" {
			started = count
		}
		if started == "" {
			return seen{}, nil
		}
		at := time.Now()
		if count != "" && count != started {
			at = at.Add(late)
		}
		return seen{started, at}, errors.Join(note(path, started), os.Chtimes(path, at, at))
	}
	if err != nil {
		return seen{}, err
	}
	text, err := read(path)
	return seen{text, info.ModTime()}, err
}

// note writes the count before the process exits: the next process runs next to containers that started with this count or a later one.
func note(path, count string) error {
	next := path + ".next"
	if err := os.WriteFile(next, []byte(count), 0o600); err != nil { //nolint:gosec // the same
		return err
	}
	return os.Rename(next, path) //nolint:gosec // the same
}

// read returns the count in a file, or "" if it has none.
func read(path string) (string, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the pod says which
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return number(string(text)), err
}

// number returns the text if it is a count, otherwise "".
func number(text string) string {
	text = strings.TrimSpace(text)
	if n, err := strconv.Atoi(text); err != nil || n < 0 {
		return ""
	}
	return text
}
