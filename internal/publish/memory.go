package publish

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// memoryName is the file of a Memory.
const memoryName = ".quarantines"

// Memory keeps a few bytes in a hidden file of a directory. The next process that publishes there can read them.
type Memory struct{ dir *Dir }

// Memory returns the memory of the directory.
func (d *Dir) Memory() Memory { return Memory{d} }

// Load returns the bytes that were saved last, or nil if there are none.
func (m Memory) Load() ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(m.dir.path, memoryName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// Save replaces the saved bytes atomically: if the process dies meanwhile, the old bytes stay.
func (m Memory) Save(b []byte) error {
	m.dir.mu.Lock()
	defer m.dir.mu.Unlock()
	if err := errors.Join(makeDirs(m.dir.path), m.dir.replaceFile(memoryName, string(b))); err != nil {
		return m.dir.explain(err)
	}
	return nil
}
