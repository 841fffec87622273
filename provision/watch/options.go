package watch

import (
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/dhcpoption"
	"slipway.dev/slipway/pxe/trace"
)

// GivenOption is a DHCP option that an admin has put into a list, and what becomes of it for one client.
type GivenOption struct {
	Option string `json:"option" doc:"Number and name"`
	Value  string `json:"value"`
	From   string `json:"from" doc:"Whose list it comes from: of a reservation, a class or a subnet"`
	Note   string `json:"note,omitempty" doc:"Why it is not sent now, or only if asked for"`
}

// givenOptions says which options of the lists a client is given, as its latest packet tells who it is. Without a packet the
// classes that need one are named, because nobody knows whether it is in them.
func givenOptions(tx inventory.Tx, mac inventory.MAC, subnet *inventory.Subnet, packets []trace.Packet) (all []GivenOption, err error) {
	if mac == "" {
		return nil, nil
	}
	leases, err := tx.ListLeasesOf(mac)
	if err != nil {
		return nil, err
	}
	// A client without a boot still has the subnet of its lease.
	if subnet == nil && len(leases) > 0 {
		s, err := tx.Subnets().Find(leases[0].Subnet)
		if err != nil {
			return nil, err
		}
		subnet = &s
	}
	if subnet == nil {
		return nil, nil
	}
	classes, err := tx.Classes().List(inventory.Page{})
	if err != nil {
		return nil, err
	}
	of := dhcpoption.Of{Subnet: subnet}
	client, heard := lastClient(packets)
	client.MAC = mac
	of.Classes = dhcpoption.ClassesOf(classes, client.ClassClient())
	if of.Reservation, err = reservedFor(tx, mac, subnet.Name, leases); err != nil {
		return nil, err
	}
	// The same choice as in the DHCP server, so that this list cannot differ from what is sent.
	for _, c := range dhcpoption.Choose(of) {
		g := GivenOption{Option: c.Label(), Value: c.Value, From: c.From}
		switch why := dhcpoption.Withheld(&c.Option, client.Stage != pxe.StageOS && heard, subnet.Is6()); {
		case subnet.Mode == inventory.ModeProxy || subnet.Mode == inventory.ModeOff:
			g.Note = "not sent: subnet " + subnet.Name + " is in mode " + string(subnet.Mode) + ", where another server gives options"
		case why != "":
			g.Note = "not sent: " + why
		case !c.IsAlways:
			g.Note = "sent if the client asks for it"
		}
		all = append(all, g)
	}
	// Nobody can say whether a machine is in such a class before it has sent a packet.
	for _, c := range classes {
		if !heard && c.NeedsPacket() && len(c.OptionsOf(subnet.Is6())) > 0 {
			all = append(all, GivenOption{Option: "?", From: "class " + c.Name, Note: "no packet of the client is kept that tells whether it is in the class"})
		}
	}
	return all, nil
}

// lastClient is who sent the latest DHCP message.
func lastClient(packets []trace.Packet) (pxe.Client, bool) {
	for _, p := range slices.Backward(packets) {
		if p.DHCP != nil && !p.DHCP.IsReply {
			return p.DHCP.Client, true
		}
	}
	return pxe.Client{Stage: pxe.StageOS}, false
}

// reservedFor finds the reservation of a client in a subnet: that of its MAC, or of the address that it has.
func reservedFor(tx inventory.Tx, mac inventory.MAC, subnet string, leases []inventory.Lease) (*inventory.Reservation, error) {
	all, err := tx.ListReservations(subnet, inventory.Page{})
	if err != nil {
		return nil, err
	}
	for i := range all {
		isHeld := slices.ContainsFunc(leases, func(l inventory.Lease) bool { return l.Address == all[i].Address })
		// A reservation with a MAC is for that machine alone, whichever client holds the address now.
		if all[i].MAC == mac || isHeld && all[i].MAC == "" {
			return &all[i], nil
		}
	}
	return nil, nil
}
