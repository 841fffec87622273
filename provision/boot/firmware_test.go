package boot

import (
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

func TestRefusalsAreCountedPastBootsThatEndedBeforeTheirLoader(t *testing.T) {
	boot := func(step string, o inventory.Outcome) try {
		return try{inventory.BootSession{Step: step, Outcome: o, Firmware: inventory.UEFI}, "snponly.efi"}
	}
	refused := boot(inventory.EventLoaderSent, inventory.OutcomeAbandoned)
	cut := boot(inventory.EventDHCPOffer, inventory.OutcomeAbandoned) // HTTP Boot, the firmware's next try, as the machine was reset
	cut.loader = ""
	bios, other := refused, refused
	bios.Firmware, other.loader = inventory.BIOS, "shimx64.efi"
	for i, c := range []struct {
		latest []try
		want   bool
	}{
		{nil, false},
		{[]try{refused}, false},
		{[]try{refused, refused}, true},
		{[]try{refused, cut, refused}, true},
		{[]try{cut, refused, cut, cut, refused, cut}, true},
		{[]try{cut, cut, cut}, false},
		{[]try{refused, other}, false},
		{[]try{refused, other, other}, false},
		{[]try{refused, boot(inventory.EventScriptAsked, inventory.OutcomeAbandoned), refused}, false},
		{[]try{refused, boot(inventory.EventReported, inventory.OutcomeArrived), refused}, false},
		{[]try{bios, bios}, false},
	} {
		if _, got := loaderRefused(c.latest); got != c.want {
			t.Errorf("case %d: refused %t, want %t", i, got, c.want)
		}
	}
}

func TestARefusalIsLearntAndForgottenByWhatFollowsOnEitherLoader(t *testing.T) {
	const plain, shim = "snponly.efi", "shimx64.efi"
	sent := func(loader string) try {
		return try{inventory.BootSession{Step: inventory.EventLoaderSent, Outcome: inventory.OutcomeAbandoned, Firmware: inventory.UEFI}, loader}
	}
	asked := func(loader string) try {
		return try{inventory.BootSession{Step: inventory.EventScriptAsked, Outcome: inventory.OutcomeAbandoned, Firmware: inventory.UEFI}, loader}
	}
	on, off := pxe.SecureBootOn, pxe.SecureBootOff
	for _, c := range []struct {
		name            string
		refused, secure string // what is known of the host
		latest          []try
		signed          string
		want            verdict
	}{
		{"nothing was booted", plain, "", nil, shim, asBefore},
		{"once is not enough", "", "", []try{sent(plain)}, shim, asBefore},
		{"twice is a refusal", "", "", []try{sent(plain), sent(plain)}, shim, isRefused},
		{"no other loader is there", "", "", []try{sent(plain), sent(plain)}, "", asBefore},
		{"the other loader is the same", "", "", []try{sent(plain), sent(plain)}, plain, asBefore},
		{"off may have been long ago", "", off, []try{sent(plain), sent(plain)}, shim, isRefused},
		{"on needs no refusal", "", on, []try{sent(plain), sent(plain)}, shim, asBefore},
		{"a loader of a quirk", "", "", []try{sent("own.efi"), sent("own.efi")}, shim, asBefore},
		{"an offer from before the refusal", plain, "", []try{sent(plain), sent(plain), sent(plain)}, shim, asBefore},
		{"the signed one is tried once", plain, "", []try{sent(shim), sent(plain), sent(plain)}, shim, asBefore},
		{"the signed one is no better", plain, "", []try{sent(shim), sent(shim), sent(plain)}, shim, isNoBetter},
		{"the signed one is no better, and Secure Boot was off", plain, off, []try{sent(shim), sent(shim)}, shim, isNoBetter},
		{"with Secure Boot on there is no way back", plain, on, []try{sent(shim), sent(shim)}, shim, asBefore},
		{"an offer from before it was forgotten", "", "", []try{sent(shim), sent(shim), sent(shim)}, shim, asBefore},
		{"the plain one is tried once more", "", "", []try{sent(plain), sent(shim), sent(shim)}, shim, asBefore},
		{"the plain one is refused again", "", "", []try{sent(plain), sent(plain), sent(shim), sent(shim)}, shim, isRefused},
		{"the signed one works", plain, "", []try{asked(shim), sent(shim)}, shim, asBefore},
		{"the signed one worked between", plain, "", []try{sent(shim), asked(shim), sent(shim)}, shim, asBefore},
		{"the refused one works", plain, "", []try{asked(plain), sent(plain)}, shim, worksAfterAll},
		{"the refused one works, and Secure Boot was off", plain, off, []try{asked(plain)}, shim, worksAfterAll},
		{"what was not refused works", "", "", []try{asked(plain)}, shim, asBefore},
		{"iPXE of its own works", plain, "", []try{asked("")}, shim, asBefore},
	} {
		facts := map[string]string{inventory.FactLoaderRefused: c.refused, inventory.FactSecureBoot: c.secure}
		if got, by := judgeLoader(c.latest, facts, plain, c.signed); got != c.want || (by == "") != (got == asBefore) {
			t.Errorf("%s: %d by %q, want %d", c.name, got, by, c.want)
		}
	}
}
