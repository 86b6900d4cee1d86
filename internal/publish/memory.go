package publish

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// memoryName is the file of a Memory.
const memoryName = ".quarantines"

// Memory keeps a few bytes in a hidden file of the directory, for the next process that publishes there.
type Memory struct{ dir *Dir }

// Memory returns the directory's.
func (d *Dir) Memory() Memory { return Memory{d} }

// Load returns what was saved last, nil if nothing was.
func (m Memory) Load() ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(m.dir.path, memoryName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// Save replaces what was saved. A process that dies meanwhile leaves what was saved before.
func (m Memory) Save(b []byte) error {
	m.dir.mu.Lock()
	defer m.dir.mu.Unlock()
	if err := errors.Join(makeDirs(m.dir.path), m.dir.replaceFile(memoryName, string(b))); err != nil {
		return m.dir.explain(err)
	}
	return nil
}
