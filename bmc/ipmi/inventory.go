package ipmi

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/bougou/go-ipmi/pkg/types"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// identity is the answer to Get Device ID (IPMI 2.0, table 20-2).
type identity struct {
	firmware string
	ipmi     string
	vendor   uint32
	product  uint16
}

func (d *driver) deviceID(ctx context.Context) (identity, error) {
	const doing = "ask the controller who it is"
	got, err := d.do(ctx, doing, netApp, cmdDeviceID)
	if err != nil {
		return identity{}, err
	}
	if len(got) < 11 {
		return identity{}, d.short(doing)
	}
	return identity{
		firmware: fmt.Sprintf("%d.%02x", got[2]&0x7f, got[3]), // major is binary, minor is two decimal digits
		ipmi:     fmt.Sprintf("%d.%d", got[4]&0x0f, got[4]>>4),
		vendor:   uint32(got[6]) | uint32(got[7])<<8 | uint32(got[8]&0x0f)<<16,
		product:  binary.LittleEndian.Uint16(got[9:]),
	}, nil
}

// vendorName names a vendor, if only by its number.
func vendorName(id uint32) string {
	if name, ok := vendors[id]; ok {
		return name
	}
	return "IANA " + strconv.FormatUint(uint64(id), 10)
}

// Inventory implements bmc.InventoryReader. IPMI knows labels and serial numbers, but neither CPUs, memory nor disks.
func (d *driver) Inventory(ctx context.Context) (bmc.Inventory, error) {
	id, err := d.deviceID(ctx)
	if err != nil {
		return bmc.Inventory{}, err
	}
	inv := bmc.Inventory{Vendor: vendorName(id.vendor), Model: fmt.Sprintf("0x%04x", id.product), Firmware: id.firmware}
	inv.Hardware = inventory.Hardware{
		CollectedAt: time.Now().UTC(), Source: "bmc",
		BMC: &inventory.BMCFacts{Firmware: id.firmware, IPMI: id.ipmi, Vendor: inv.Vendor},
	}
	// What follows is optional in IPMI: only a controller that falls silent is an error.
	f, err := d.fru(ctx)
	if err := d.fatal(ctx, err); err != nil {
		return bmc.Inventory{}, err
	}
	if f != nil {
		inv.Hardware.System = systemOf(f)
	}
	guid, err := d.do(ctx, "read the GUID", netApp, cmdSystemGUID)
	if err := d.fatal(ctx, err); err != nil {
		return bmc.Inventory{}, err
	}
	inv.Hardware.System.UUID = uuidOf(guid)
	if err := d.lanFacts(ctx, inv.Hardware.BMC); err != nil {
		return bmc.Inventory{}, err
	}
	return inv, nil
}

// fatal returns an error that ends a reading: any but a refusal, or a record that cannot be understood. Missing rights end
// it, too: the machine would else look as if it had no such part.
func (d *driver) fatal(ctx context.Context, err error) error {
	if err == nil || codeOf(err) != 0 && codeOf(err) != codeNotPermitted {
		return nil
	}
	if ctx.Err() == nil && bmc.KindOf(err) == inventory.Internal {
		return nil
	}
	return err
}

// lanFacts reads address, its source, VLAN and MAC of the controller's own port (IPMI 2.0, table 23-4).
func (d *driver) lanFacts(ctx context.Context, b *inventory.BMCFacts) error {
	const address, source, mac, vlan = 3, 4, 5, 20
	for _, param := range []byte{address, source, mac, vlan} {
		got, err := d.do(ctx, "read the LAN settings", netLAN, cmdGetLAN, currentChannel, param, 0, 0)
		if err := d.fatal(ctx, err); err != nil {
			return err
		}
		if err != nil || len(got) < 2 {
			continue
		}
		// The first byte is the revision of the parameter.
		switch v := got[1:]; {
		case param == address && len(v) >= 4:
			if a := netip.AddrFrom4([4]byte(v)); !a.IsUnspecified() {
				b.Address = a.String()
			}
		case param == source:
			b.IsStatic = v[0]&0x0f == 1
		case param == mac && len(v) >= 6:
			b.MAC, _ = inventory.ParseMAC(hex.EncodeToString(v[:6]))
		case param == vlan && len(v) >= 2 && v[1]&0x80 != 0: // the highest bit: the VLAN is in use
			b.VLAN = int(v[1]&0x0f)<<8 | int(v[0])
		}
	}
	return nil
}

// systemOf takes the labels from the product area, and what it lacks from board and chassis.
func systemOf(f *types.FRU) (s inventory.System) {
	if p := f.ProductInfoArea; p != nil {
		s.Manufacturer = label(p.ManufacturerTypeLength, p.Manufacturer)
		s.Product = label(p.NameTypeLength, p.Name)
		s.Version = label(p.VersionTypeLength, p.Version)
		s.Serial = label(p.SerialNumberTypeLength, p.SerialNumber)
		s.AssetTag = label(p.AssetTagTypeLength, p.AssetTag)
	}
	if b := f.BoardInfoArea; b != nil {
		s.BoardProduct = label(b.ProductNameTypeLength, b.ProductName)
		s.BoardSerial = label(b.SerialNumberTypeLength, b.SerialNumber)
		s.Manufacturer = cmp.Or(s.Manufacturer, label(b.ManufacturerTypeLength, b.Manufacturer))
	}
	if c := f.ChassisInfoArea; c != nil {
		s.Chassis = inventory.Clean(c.ChassisType.String(), 40)
		s.Serial = cmp.Or(s.Serial, label(c.SerialNumberTypeLength, c.SerialNumber))
	}
	return s
}

func label(tl types.TypeLength, raw []byte) string {
	s, err := decode(func() (string, error) { return types.FRUFieldString(tl, raw), nil })
	if err != nil {
		return ""
	}
	return inventory.Clean(s, 120)
}

// uuidOf reads the SMBIOS UUID from a GUID. IPMI wants it with its bytes reversed, most vendors send it as SMBIOS stores
// it, some as it is written: whichever makes a valid UUID is it, and none if that does not decide.
func uuidOf(g []byte) string {
	if len(g) != 16 {
		return ""
	}
	smbios := []byte{g[3], g[2], g[1], g[0], g[5], g[4], g[7], g[6], g[8], g[9], g[10], g[11], g[12], g[13], g[14], g[15]}
	reversed := make([]byte, 16)
	for i := range g {
		reversed[i] = g[15-i]
	}
	var found string
	for _, u := range [][]byte{smbios, reversed, g} {
		// The version and the variant of RFC 9562 are at fixed places, which a wrong order of bytes hardly ever hits.
		if version := u[6] >> 4; version < 1 || version > 8 || u[8]&0xc0 != 0x80 {
			continue
		}
		s := fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
		if found != "" && found != s {
			return ""
		}
		found = s
	}
	return found
}
