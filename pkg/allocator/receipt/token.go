package receipt

import (
	"errors"
	"fmt"
	"strconv"
)

// ErrNoToken means that a resourceVersion cannot be a fencing token. Then no pod of the cluster can get an id.
var ErrNoToken = errors.New("the API server's resourceVersion is no fencing token")

// TokenOf returns the fencing token of a write, from the resourceVersion that the API server gave to the object. A token has 63 bits, like etcd's
// revisions, because databases and languages in which programs compare tokens have no larger integers. The error wraps ErrNoToken.
func TokenOf(version string) (int64, error) {
	token, err := strconv.ParseInt(version, 10, 64)
	if err != nil || token <= 0 || strconv.FormatInt(token, 10) != version {
		return 0, fmt.Errorf("%w: it is %s, and has to be a decimal number from 1 to 9223372036854775807: run idalloc on an API server whose storage counts its writes, as etcd does",
			ErrNoToken, quote(version))
	}
	return token, nil
}
