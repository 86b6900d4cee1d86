// Package dice is where everything that is random in a simulated history comes from.
//
// Dice are derived from a seed and from names: which pod, which request, how many times before. They do not depend on
// the order of execution, so dice of equal names always roll equal numbers. They are good enough for a simulation, and for
// nothing else.
package dice
