package machineconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// ShellBlock says a text as lines of a script of bash that run it in a shell of its own, as it is written: an exit, a
// quote that is never closed, a comment or a change of folder in it ends and changes nothing around it. The shell ends at the
// first command that fails, and then the block has failed. The text stands in no argument, for everybody may read those.
func ShellBlock(text string) string {
	sum := sha256.Sum256([]byte(text))
	end := "SLIPWAY_" + hex.EncodeToString(sum[:6])
	return "/bin/bash -e <(cat << '" + end + "'\n" + strings.TrimRight(text, "\n") + "\n" + end + "\n)\n"
}
