package pxe

import (
	"fmt"
	"net/url"
	"slices"

	"slipway.dev/slipway/inventory"
)

// Choice is what a person chose in the menu at a machine's console.
type Choice string

// The choices.
const (
	ChoiceMenu     Choice = "menu"     // GRUB asks for the menu itself
	ChoiceContinue Choice = "continue" // what Slipway decided
	ChoiceDisk     Choice = "disk"
	ChoiceRescue   Choice = "rescue"
	ChoiceMemtest  Choice = "memtest"
)

// ParseChoice reads a choice; any other text counts as none.
func ParseChoice(s string) Choice {
	c := Choice(s)
	if slices.Contains([]Choice{ChoiceMenu, ChoiceContinue, ChoiceDisk, ChoiceRescue}, c) {
		return c
	}
	return ""
}

// hasMenu reports whether people may choose at the console of that host: it is switched on, nothing is being done with
// the host, and it is one of ours.
func hasMenu(h *inventory.Host, p Plan) bool {
	return p.MenuFor > 0 && p.Work == nil && h != nil && !h.IsAdopted && !h.InMaintenance &&
		h.State != inventory.Discovered && h.State != inventory.Failed
}

// Chosen returns the plan with a person's choice in the menu; without a menu it is unchanged.
func Chosen(c Client, h *inventory.Host, p Plan) Plan {
	if !hasMenu(h, p) {
		return p
	}
	switch c.Choice {
	case ChoiceDisk:
		p.Work = &Work{Boot: BootDisk, Reason: "its own disk, chosen in the boot menu"}
	case ChoiceRescue:
		p.Work = &Work{Boot: BootAgent, Reason: "the rescue system, chosen in the boot menu", Agent: p.Rescue, Args: []string{"slipway.debug=shell"}}
	}
	return p
}

// offerMenu puts the menu before a decision that nobody has chosen yet.
func (a asked) offerMenu(d Decision) Decision {
	isAsking := a.c.Stage == StageIPXE && a.c.Identity != nil || a.c.Stage == StageGRUB
	if !isAsking || a.c.Choice != "" && a.c.Choice != ChoiceMenu || !hasMenu(a.h, a.p) || d.IsTrap || d.Boot == BootPark || d.Boot == BootIgnore {
		return d
	}
	return Decision{Boot: BootMenu, Again: a.p.MenuFor, Hint: d.Hint, Reason: fmt.Sprintf("boot menu; after %s without a choice: %s", inventory.Duration(a.p.MenuFor), d.Reason)}
}

type menuItem struct {
	choice Choice
	text   string
}

// menuItems are the entries, the first is taken when nobody chooses.
func menuItems(in ScriptInput) []menuItem {
	items := []menuItem{{ChoiceContinue, "Go on: what Slipway decided for " + in.hostName()}, {ChoiceDisk, "Boot from its own disk"}}
	if in.Plan.Rescue != nil {
		items = append(items, menuItem{ChoiceRescue, "Rescue system: " + in.Plan.Rescue.Name})
	}
	if in.Client.SecureBoot != SecureBootOn && in.Plan.Loaders != nil && in.Plan.Loaders(memtestName(in.Client)) {
		items = append(items, menuItem{ChoiceMemtest, "Test the memory"})
	}
	return items
}

func memtestName(c Client) string {
	if c.Firmware == inventory.BIOS {
		return "memtest.bin"
	}
	if c.Arch == inventory.ARM64 {
		return "" // there is none
	}
	return "memtest.efi"
}

// menu writes the menu for iPXE.
func (s *script) menu() {
	s.line("menu Slipway:", quote(s.in.hostName()))
	for _, item := range menuItems(s.in) {
		s.line("item", string(item.choice), quote(item.text))
	}
	s.line("choose --default", string(ChoiceContinue), "--timeout", fmt.Sprint(s.in.Decision.Again.Milliseconds()), "choice || goto continue")
	s.line("goto ${choice}")
	for _, item := range menuItems(s.in) {
		if item.choice == ChoiceContinue {
			continue
		}
		s.line(":" + string(item.choice))
		if item.choice == ChoiceMemtest {
			s.line("chain --autofree", URL(s.in.Base, s.in.Session, memtestName(s.in.Client)), "|| goto continue")
			continue
		}
		s.line("set choice:string", string(item.choice))
		s.line("goto chosen")
	}
	s.line(":continue")
	s.line("set choice:string", string(ChoiceContinue))
	s.line(":chosen")
	s.chain(s.asks("script", "?"+askQuery+"&choice=${choice}"), false)
}

// askFile is what GRUB asks for with a choice made: who it is, as its first question said it.
func askFile(c Client, choice Choice) string {
	q := url.Values{"mac": {string(c.MAC)}, "choice": {string(choice)}}
	cpu, lockdown := string(c.Arch), ""
	if c.SecureBoot == SecureBootOn {
		lockdown = "y"
	}
	q.Set("cpu", cpu)
	q.Set("platform", "efi")
	q.Set("lockdown", lockdown)
	return "/grub/ask?" + q.Encode()
}
