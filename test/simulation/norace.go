//go:build !race

package simulation

// raceEnabled says that this program is built with the race detector.
const raceEnabled = false
