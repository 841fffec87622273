// Package option owns the DHCP options that an admin adds to a subnet, a class or a reservation. It has their names and numbers, the types
// of their values, and their form in packets. It refuses options that the server makes itself. It decides nothing about a client: package
// pxe/dhcpoption chooses among them.
package option

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Option is a DHCP option that answers carry besides those that the server makes itself. After its check it has a number
// and a type, and a name if its number has one.
type Option struct {
	Name  string `json:"name,omitempty" doc:"Name of the table, such as tftp-server-name; name, code or both"`
	Code  int    `json:"code,omitempty" doc:"Number, where the option has no name"`
	Space string `json:"space,omitempty" doc:"Empty for an option of its own; vendor puts it into option 43; vendor-N into the options of enterprise N (125, for IPv6 17)"`
	Type  Type   `json:"type,omitempty" doc:"address, bool, domain, empty, hex, int8, int16, int32, routes, text, uint8, uint16 or uint32; absent: of the table"`
	Value string `json:"value" doc:"Several values have commas between them; a text is taken whole"`
	// IsAlways is for clients that want what they do not ask for.
	IsAlways bool `json:"isAlways,omitempty" doc:"Sent to clients that do not ask for it, too"`
}

// The limits of options.
const (
	maxOptions      = 64   // in one list
	maxText         = 2048 // of a value as it is written
	maxBytes        = 1024 // of a value as it is sent
	maxVendorBytes  = 249  // of a value inside of another option of DHCPv4
	vendorSpace     = "vendor"
	vendorSpaceOf   = "vendor-"
	optionVendor4   = 43
	optionVIVSO4    = 125
	optionVendor6   = 17
	lastOptionCode4 = 254
)

// Owner is the kind of thing that has a list of options.
type Owner string

// The owners of options.
const (
	OfSubnet      Owner = "subnet"
	OfClass       Owner = "class"
	OfReservation Owner = "reservation"
)

// Enterprise returns the enterprise number of an option's space; ok is false in the other spaces.
func (o *Option) Enterprise() (n uint32, ok bool) {
	text, ok := strings.CutPrefix(o.Space, vendorSpaceOf)
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseUint(text, 10, 32)
	return uint32(v), err == nil
}

// IsEncapsulated reports whether the option travels inside of option 43.
func (o *Option) IsEncapsulated() bool { return o.Space == vendorSpace }

// Refusal says why an option or a list cannot be kept, and what to write instead. It does not know whose options they are: package
// inventory adds that, and makes an error of its own kind of it.
type Refusal struct {
	Option string // as the list calls it, unchecked; "" for the list as a whole
	Msg    string
	Hint   string
}

// Error makes a Refusal an error for those that use this package alone.
func (r *Refusal) Error() string {
	if r.Option == "" {
		return r.Msg
	}
	return "option " + r.Option + ": " + r.Msg
}

func refusef(format string, args ...any) *Refusal { return &Refusal{Msg: fmt.Sprintf(format, args...)} }

func (r *Refusal) withHint(format string, args ...any) *Refusal {
	r.Hint = fmt.Sprintf(format, args...)
	return r
}

// clip bounds a text that a message quotes.
func clip(s string, limit int) string {
	return strings.TrimSpace(strings.ToValidUTF8(s[:min(len(s), limit)], ""))
}

// Check fills in and checks a list of options; nil says that it can be kept. Is6 says of which DHCP they are.
func Check(owner Owner, list []Option, is6 bool) *Refusal {
	fail := func(i int, r *Refusal) *Refusal {
		r.Option = list[i].label()
		return r
	}
	if len(list) > maxOptions {
		return refusef("has %d options; at most %d are kept", len(list), maxOptions)
	}
	seen := map[string]bool{}
	for i := range list {
		o := &list[i]
		if err := o.check(owner, is6); err != nil {
			return fail(i, err)
		}
		key := o.Space + "/" + strconv.Itoa(o.Code)
		if seen[key] {
			return fail(i, refusef("it is there twice").withHint("write all of its values in one option, with commas between them"))
		}
		seen[key] = true
	}
	for i := range list {
		if o := &list[i]; o.Space != "" && seen["/"+strconv.Itoa(o.carrier(is6))] {
			return fail(i, refusef("it belongs into option %d, which the list gives as a whole, too", o.carrier(is6)).
				withHint("leave option %d out, or write all of it there", o.carrier(is6)))
		}
	}
	return nil
}

// carrier is the number of the option that an option travels in.
func (o *Option) carrier(is6 bool) int {
	switch {
	case is6:
		return optionVendor6
	case o.IsEncapsulated():
		return optionVendor4
	default:
		return optionVIVSO4
	}
}

// label is what an error message calls the option.
func (o *Option) label() string {
	text := cmp.Or(o.Name, strconv.Itoa(o.Code))
	if o.Space != "" {
		text = o.Space + ":" + text
	}
	return text
}

// Label names an option for people: its number and its name.
func (o *Option) Label() string {
	text := strconv.Itoa(o.Code)
	if o.Name != "" {
		text += " " + o.Name
	}
	if o.Space != "" {
		text = o.Space + ":" + text
	}
	return text
}

func (o *Option) check(owner Owner, is6 bool) *Refusal {
	if len(o.Value) > maxText {
		return refusef("its value has %d bytes; at most %d are kept", len(o.Value), maxText)
	}
	if err := o.checkSpace(is6); err != nil {
		return err
	}
	if err := o.identify(is6); err != nil {
		return err
	}
	if err := o.refuse(owner, is6); err != nil {
		return err
	}
	value, err := o.Encode(is6)
	if err != nil {
		return err
	}
	most := maxBytes
	if o.Space != "" && !is6 {
		most = maxVendorBytes
	}
	if len(value) > most {
		return refusef("its value takes %d bytes in a packet; at most %d fit", len(value), most)
	}
	return nil
}

func (o *Option) checkSpace(is6 bool) *Refusal {
	_, isOfEnterprise := o.Enterprise()
	switch {
	case o.Space == "" || isOfEnterprise:
		return nil
	case o.IsEncapsulated() && !is6:
		return nil
	case o.IsEncapsulated():
		return refusef("DHCPv6 has no option 43").
			withHint("write the space as vendor-N, with the vendor's enterprise number, such as vendor-42623")
	}
	return refusef("%q is not a space of options", clip(o.Space, 40)).
		withHint("leave it out, or use vendor for option 43, or vendor-N for the options of enterprise N")
}

// identify finds number, name and type.
func (o *Option) identify(is6 bool) *Refusal {
	last := lastOptionCode4
	if is6 {
		last = 65535
	}
	if o.Space != "" {
		if n, err := strconv.Atoi(o.Name); err == nil && o.Code == 0 {
			o.Name, o.Code = "", n
		}
		if o.Code < 1 || o.Code > last {
			return refusef("an option of a vendor has a number between 1 and %d", last)
		}
		o.Name, o.Type = "", cmp.Or(o.Type, Text)
		return o.checkType()
	}
	named := table(is6)
	if o.Name != "" {
		i := slices.IndexFunc(named, func(k known) bool { return k.name == o.Name })
		switch {
		case i < 0 && o.Code == 0:
			return refusef("no option is called so").withHint("give its number and its type; docs/dhcp.md lists the names")
		case i < 0:
			return refusef("no option is called so").withHint("leave the name out: the number is enough")
		case o.Code != 0 && o.Code != named[i].code:
			return refusef("%s is option %d, not %d", o.Name, named[i].code, o.Code).withHint("leave one of the two out")
		}
		o.Code = named[i].code
	}
	if o.Code < 1 || o.Code > last {
		return refusef("%d is not a number of an option that can be sent", o.Code).withHint("use 1 to %d, or a name", last)
	}
	if i := slices.IndexFunc(named, func(k known) bool { return k.code == o.Code }); i >= 0 {
		o.Name, o.Type = named[i].name, cmp.Or(o.Type, named[i].kind)
	}
	if o.Type == "" {
		return refusef("its type is not known").withHint("give a type: %s", typesText())
	}
	return o.checkType()
}

func (o *Option) checkType() *Refusal {
	if !slices.Contains(Types(), o.Type) {
		return refusef("%q is not a type of an option", clip(string(o.Type), 40)).withHint("use %s", typesText())
	}
	return nil
}

// refuse says why an option cannot be in a list: the server makes it, clients send it, or a field of the owner is for it.
func (o *Option) refuse(owner Owner, is6 bool) *Refusal {
	if o.Space != "" {
		return nil
	}
	if why := ownReason(o.Code, is6); why != "" {
		return refusef("the server does not take it from a list: %s", why).withHint("leave it out")
	}
	field, isHere := fieldOf(o.Code, is6, owner)
	if isHere {
		return refusef("the %s has a field for it", field.of).withHint("set %s of the %s instead", field.name, field.of)
	}
	return nil
}

// Parse reads an option as one text: [always:][vendor:|vendor-N:]NAME|NUMBER[/TYPE]=VALUE. In the value \s stands for
// a blank, which separates options in a table, and \\ for a backslash.
func Parse(text string) (o Option, refused *Refusal) {
	key, value, ok := strings.Cut(text, "=")
	if !ok {
		key = text
	}
	if rest, is := strings.CutPrefix(key, "always:"); is {
		key, o.IsAlways = rest, true
	}
	if space, rest, is := strings.Cut(key, ":"); is {
		o.Space, key = space, rest
	}
	name, kind, _ := strings.Cut(key, "/")
	if o.Type = Type(kind); name == "" || !ok && o.Type != Empty {
		return Option{}, refusef("%q is not an option", clip(text, 60)).
			withHint("write tftp-server-name=boot.example, 224/uint16=5, or vendor:1=TEXT inside option 43")
	}
	var err error
	if o.Code, err = strconv.Atoi(name); err != nil {
		o.Name, o.Code = name, 0
	}
	o.Value = unescape(value)
	return o, nil
}

// Text writes an option as Parse reads it.
func (o *Option) Text() string {
	var b strings.Builder
	if o.IsAlways {
		b.WriteString("always:")
	}
	if o.Space != "" {
		b.WriteString(o.Space + ":")
	}
	b.WriteString(cmp.Or(o.Name, strconv.Itoa(o.Code)))
	if o.Type != "" {
		b.WriteString("/" + string(o.Type))
	}
	b.WriteString("=" + strings.NewReplacer(`\`, `\\`, " ", `\s`).Replace(o.Value))
	return b.String()
}

func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (s[i+1] == 's' || s[i+1] == '\\') {
			i++
			if s[i] == 's' {
				b.WriteByte(' ')
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
