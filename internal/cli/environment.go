package cli

import (
	"errors"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// Environment returns the name of a flag's environment variable.
type Environment func(f *pflag.Flag) string

// Prefixed names the variable of the flag --max-age PREFIX_MAX_AGE, for example.
func Prefixed(prefix string) Environment {
	return func(f *pflag.Flag) string {
		return prefix + "_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
	}
}

// Set sets flags that are not on the command line from their environment variables. Errors are UsageErrors.
func (name Environment) Set(flags *pflag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		value, ok := os.LookupEnv(name(f))
		if !ok || f.Changed || cobras(f) {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			errs = append(errs, Usagef("environment variable %s: %w", name(f), err))
		}
	})
	return errors.Join(errs...)
}

// cobras reports whether cobra added the flag. Such a flag has no environment variable.
func cobras(f *pflag.Flag) bool { return f.Name == "help" || f.Name == "version" }
