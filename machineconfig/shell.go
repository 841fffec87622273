package machineconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// ShellBlock writes a text as lines of a bash script that run it unchanged in a shell of its own. An exit, an open quote, a
// comment or a change of folder in it has no effect outside. The shell ends at the first command that fails, and then the
// block has failed. The text is never in an argument, because every user of the system can read arguments.
func ShellBlock(text string) string {
	sum := sha256.Sum256([]byte(text))
	end := "SLIPWAY_" + hex.EncodeToString(sum[:6])
	return "/bin/bash -e <(cat << '" + end + "'\n" + strings.TrimRight(text, "\n") + "\n" + end + "\n)\n"
}
