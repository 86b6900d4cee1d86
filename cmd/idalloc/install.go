package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/idalloc/idalloc/internal/cli"
)

// installed is the name of the copy, independent of this program's name.
const installed = "idalloc"

func newInstall() *cobra.Command {
	return &cobra.Command{
		Use:         "install DIR",
		Annotations: marked(),
		Short:       "Copy this program to DIR/idalloc, for another image",
		Long: `Copies this program to DIR/idalloc. Run it as an init container from idalloc's
image, with an emptyDir at DIR. A container that mounts the emptyDir then has
idalloc, and starts its program by "DIR/idalloc run". DIR must exist. The copy
appears in one step, and an earlier copy may run meanwhile.`,
		Example: "  idalloc install /opt/idalloc",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return cli.Usagef("name one directory: idalloc install DIR")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("cannot find this program: %w", err)
			}
			if err := install(self, args[0]); err != nil {
				return fmt.Errorf("cannot install into %s: %w: the directory has to exist, and this user needs to be able to write to it", args[0], err)
			}
			return nil
		},
	}
}

// install copies a program into dir. After an error, dir is unchanged.
func install(program, dir string) (err error) {
	in, err := os.Open(program) //nolint:gosec // this very program
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was only read
	out, err := os.CreateTemp(dir, "."+installed+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(out.Name()))
		}
	}()
	_, err = io.Copy(out, in)
	// Every user of the other container may run the copy, and none may change it.
	err = errors.Join(err, out.Chmod(0o555), out.Sync(), out.Close())
	if err != nil {
		return err
	}
	return os.Rename(out.Name(), filepath.Join(dir, installed))
}
