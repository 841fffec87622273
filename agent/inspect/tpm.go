package inspect

import (
	"encoding/binary"
	"strings"

	"slipway.dev/slipway/inventory"
)

// getManufacturer is TPM2_GetCapability(TPM_CAP_TPM_PROPERTIES, TPM_PT_MANUFACTURER, 1), without a session (TPM 2.0
// library specification, part 3, section 30.2).
var getManufacturer = []byte{
	0x80, 0x01, 0, 0, 0, 22, 0, 0, 0x01, 0x7a, // tag, size, command
	0, 0, 0, 6, 0, 0, 0x01, 0x05, 0, 0, 0, 1,
}

// tpm finds the TPM.
func (s *Source) tpm() *inventory.TPM {
	names := s.list("sys/class/tpm")
	if len(names) == 0 {
		return nil
	}
	at := "sys/class/tpm/" + names[0]
	t := &inventory.TPM{Version: "1.2"}
	// A TPM 1.2 has the file caps; the version has a file of its own since Linux 5.6.
	if v := s.text(at, "tpm_version_major"); v == "2" || v == "" && !s.exists(at, "device/caps") && !s.exists(at, "caps") {
		t.Version = "2.0"
		if answer, err := s.Devices.TPM(getManufacturer); err == nil {
			t.Vendor = tpmVendor(answer)
		}
		return t
	}
	for _, line := range strings.Split(string(s.raw(at, "caps"))+"\n"+string(s.raw(at, "device/caps")), "\n") {
		if _, id, ok := strings.Cut(line, "Manufacturer: 0x"); ok {
			t.Vendor = clean(unhex(id))
		}
	}
	return t
}

// tpmVendor reads four letters from the answer to getManufacturer: header (10), more, capability, count, property, value.
func tpmVendor(answer []byte) string {
	if len(answer) < 27 || binary.BigEndian.Uint32(answer[6:]) != 0 {
		return ""
	}
	return clean(strings.TrimSpace(string(answer[23:27])))
}

func unhex(s string) string {
	var b []byte
	for i := 0; i+1 < len(s) && i < 16; i += 2 {
		hi, lo := strings.IndexByte("0123456789abcdef", s[i]|0x20), strings.IndexByte("0123456789abcdef", s[i+1]|0x20)
		if hi < 0 || lo < 0 {
			break
		}
		b = append(b, byte(hi<<4|lo))
	}
	return string(b)
}
