// Package failpoint breaks one chosen write of a program. Around that write the program crashes, stands still or is misled. Only builds with the tag failpoints
// have it. hack/failpoints tries all writes.
package failpoint
