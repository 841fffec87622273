package kubectl

import (
	"bytes"
	"strings"
	"testing"
)

func TestThePluginWithoutACommandSaysWhatItCanDo(t *testing.T) {
	var out, errs bytes.Buffer
	if code := Run(nil, &out, &errs); code != 0 || errs.Len() > 0 || !strings.Contains(out.String(), "why") || !strings.Contains(out.String(), "reprovision") {
		t.Errorf("exit code %d, %q, %s", code, errs.String(), out.String())
	}
}
