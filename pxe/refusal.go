package pxe

import (
	"errors"
	"time"

	"slipway.dev/slipway/inventory"
)

// Refusal is what a machine whose loader is not iPXE is given when its script could not be made: the same in its words.
func Refusal(c Client, base string, s inventory.SessionID, why error) []byte {
	d := refusalOf(why)
	if text, err := Script(ScriptInput{Client: c, Decision: d, Session: s, Base: base}); err == nil {
		return text
	}
	return RefusalScript(base, s, c.MAC, why)
}

func refusalOf(why error) Decision {
	d := Decision{Boot: BootWait, Reason: "the boot server could not decide: internal error", Hint: "its log says why", Again: AskAgain}
	if e, ok := errors.AsType[*inventory.Error](why); ok {
		d.Reason, d.Hint = e.Msg, e.Hint
		if e.Kind == inventory.Unavailable {
			d.Again = 5 * time.Second
		}
	}
	return d
}

// RefusalScript is what a machine is given when its script could not be made: it shows the reason, waits and asks again. An
// error that is not an inventory.Error is for our log, and stays there.
func RefusalScript(base string, s inventory.SessionID, m inventory.MAC, why error) []byte {
	d := refusalOf(why)
	out := script{in: ScriptInput{Client: Client{MAC: m}, Decision: d, Session: s, Base: base}}
	out.line("#!ipxe")
	out.wait()
	return []byte(out.String())
}
