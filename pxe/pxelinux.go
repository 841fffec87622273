package pxe

import (
	"fmt"
	"strings"

	"slipway.dev/slipway/inventory"
)

// pxelinuxScript writes a decision as a pxelinux.cfg, for U-Boot and PXELINUX. It can neither wait nor ask again: what
// is no image shows its reason as the menu's title for a second, and goes on to the machine's own disk.
func pxelinuxScript(in ScriptInput) ([]byte, error) {
	var b strings.Builder
	line := func(words ...string) { b.WriteString(strings.Join(words, " ") + "\n") }
	title := func(what string) {
		line("MENU TITLE Slipway:", consoleText(in.hostName()+" "+what+": "+in.Decision.Reason))
		line("PROMPT 1")
		line("TIMEOUT 10")
		line("DEFAULT slipway")
		line("LABEL slipway")
		line("  MENU LABEL", consoleText(what+" "+in.Decision.Hint))
	}
	var image *inventory.Image
	profile := in.Plan.Profile
	switch in.Decision.Boot {
	case BootImage:
		image = in.Plan.Image
	case BootAgent:
		image, profile, in.Plan.Config = in.Plan.Work.Agent, agentProfile(in.Plan.Work), nil
	case BootWait, BootPark:
		title("waits")
		line("  LOCALBOOT 1")
		return []byte(b.String()), nil
	case BootDisk, BootIgnore, BootMenu:
		title("boots from its own disk")
		line("  LOCALBOOT 1")
		return []byte(b.String()), nil
	default:
		return nil, fmt.Errorf("no pxelinux.cfg for the decision %q", in.Decision.Boot)
	}
	kernel, initrds, args, err := bootWords(in, image, profile)
	if err != nil {
		return nil, err
	}
	title("boots " + image.Name)
	line("  KERNEL", kernel)
	switch {
	case len(initrds) == 1:
		line("  INITRD", initrds[0])
	case len(initrds) > 1: // U-Boot takes one
		line("  INITRD", initrdsFile(in.Session))
	}
	for _, a := range args {
		if strings.Contains(a, "${") || strings.ContainsAny(a, "\"'\\;") {
			return nil, inventory.Errorf(inventory.Invalid, "image %s: U-Boot cannot pass the argument %q", image.Name, inventory.Clean(a, 100)).
				WithHint("leave out quotes, backslashes, semicolons and ${")
		}
	}
	line("  APPEND", strings.Join(args, " "))
	return []byte(b.String()), nil
}
