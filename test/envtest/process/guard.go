package process

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
)

// guardScript keeps the set of live process groups and kills what is left of it
// at the end of its input: the parent closed the pipe, or died.
const guardScript = `
groups=" "
while read -r op pid; do
  case $op in
    add) groups="$groups$pid " ;;
    remove) groups="${groups%% $pid *} ${groups#* $pid }" ;;
  esac
done
for pid in $groups; do kill -s KILL -- "-$pid" 2>/dev/null; done
exit 0
`

// guard is the shell that outlives this process just long enough to clean up.
type guard struct {
	cmd *exec.Cmd

	mu sync.Mutex
	in io.WriteCloser
}

func newGuard() (*guard, error) {
	cmd := exec.Command("/bin/sh", "-c", guardScript) //nolint:noctx // it outlives every context
	// A group of its own, so that a Ctrl-C in the terminal does not end it first.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &guard{cmd: cmd, in: in}, nil
}

func (g *guard) add(pid int)    { g.write("add", pid) }
func (g *guard) remove(pid int) { g.write("remove", pid) }

// write ignores errors: a guard that was killed leaves the other two ways of cleaning up in place.
func (g *guard) write(op string, pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, _ = fmt.Fprintln(g.in, op, pid)
}

func (g *guard) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.in.Close()
	_ = g.cmd.Wait()
}
