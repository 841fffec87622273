package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help says how to use it.
func (*completionCommand) Help() string {
	return "bash: slipway completion bash > /etc/bash_completion.d/slipway; zsh: slipway completion zsh > /usr/share/zsh/vendor-completions/_slipway; " +
		"fish: slipway completion fish > /etc/fish/completions/slipway.fish"
}

// Run writes the script for a shell.
func (c *completionCommand) Run(s *session) error {
	words := wordsOf(s.parser.Model.Node)
	switch c.Shell {
	case "bash":
		return bashCompletion(s.out, words)
	case "zsh":
		return zshCompletion(s.out, words)
	}
	return fishCompletion(s.out, words)
}

// word is what may stand behind a command: a verb or a flag.
type word struct {
	text, help string
	short      string // of a flag, with its dash
	takesValue bool
	values     []string // that a flag knows
}

// command is a command by its path, and the words that may follow it.
type command struct {
	path  string // "host list"; "" is slipway itself
	words []word
}

// wordsOf lists every command of the model, parents first.
func wordsOf(root *kong.Node) []command {
	var all []command
	var walk func(n *kong.Node, path string, flags []word)
	walk = func(n *kong.Node, path string, flags []word) {
		for _, f := range n.Flags {
			if !f.Hidden {
				flags = append(slices.Clone(flags), flagWord(f)...)
			}
		}
		c := command{path: path}
		for _, child := range n.Children {
			if child.Type == kong.CommandNode && !child.Hidden {
				c.words = append(c.words, word{text: child.Name, help: child.Help})
			}
		}
		for _, p := range n.Positional {
			for _, v := range p.EnumSlice() {
				if v != "" {
					c.words = append(c.words, word{text: v})
				}
			}
		}
		c.words = append(c.words, flags...)
		all = append(all, c)
		for _, child := range n.Children {
			if child.Type == kong.CommandNode && !child.Hidden {
				for _, name := range append([]string{child.Name}, child.Aliases...) {
					walk(child, strings.TrimSpace(path+" "+name), flags)
				}
			}
		}
	}
	walk(root, "", nil)
	return all
}

func flagWord(f *kong.Flag) []word {
	w := word{text: "--" + f.Name, help: f.Help, takesValue: !f.IsBool() && !f.IsCounter()}
	if f.Short != 0 {
		w.short = "-" + string(f.Short)
	}
	if f.Enum != "" {
		w.values = f.EnumSlice()
	}
	words := []word{w}
	if f.Tag != nil && f.Tag.Negatable != "" {
		words = append(words, word{text: "--no-" + f.Name, help: f.Help})
	}
	return words
}

// bashCompletion writes a function that finds the command among the words typed and offers what may follow it.
func bashCompletion(w io.Writer, commands []command) error {
	var b strings.Builder
	b.WriteString("# bash completion of slipway\n_slipway() {\n  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at= words= i\n" +
		"  for ((i = 1; i < COMP_CWORD; i++)); do\n    case \"$at ${COMP_WORDS[i]}\" in\n")
	var paths []string
	for _, c := range commands {
		if c.path != "" {
			paths = append(paths, bashQuote(" "+c.path))
		}
	}
	fmt.Fprintf(&b, "      %s) at=\"$at ${COMP_WORDS[i]}\" ;;\n    esac\n  done\n  case \"$prev\" in\n", strings.Join(paths, "|"))
	for _, v := range valued(commands) {
		fmt.Fprintf(&b, "    %s) COMPREPLY=($(compgen -W %s -- \"$cur\")); return ;;\n", v.text, bashQuote(strings.Join(v.values, " ")))
	}
	b.WriteString("  esac\n  case \"$at\" in\n")
	for _, c := range commands {
		var words []string
		for _, x := range c.words {
			words = append(words, x.text)
		}
		path := ""
		if c.path != "" {
			path = " " + c.path
		}
		fmt.Fprintf(&b, "    %s) words=%s ;;\n", bashQuote(path), bashQuote(strings.Join(words, " ")))
	}
	b.WriteString("  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n" +
		"  [[ ${#COMPREPLY[@]} -eq 0 && $cur != -* ]] && COMPREPLY=($(compgen -f -- \"$cur\"))\n}\ncomplete -F _slipway slipway\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// valued lists the flags that know their values, once each.
func valued(commands []command) (flags []word) {
	for _, c := range commands {
		for _, x := range c.words {
			if len(x.values) > 0 && !slices.ContainsFunc(flags, func(f word) bool { return f.text == x.text }) {
				flags = append(flags, x)
				if x.short != "" {
					flags = append(flags, word{text: x.short, values: x.values})
				}
			}
		}
	}
	return flags
}

func bashQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// zshCompletion writes a function that describes each word.
func zshCompletion(w io.Writer, commands []command) error {
	var b strings.Builder
	b.WriteString("#compdef slipway\n# zsh completion of slipway\n_slipway() {\n  local at= i\n  local -a offer\n  for ((i = 2; i < CURRENT; i++)); do\n    case \"$at ${words[i]}\" in\n")
	var paths []string
	for _, c := range commands {
		if c.path != "" {
			paths = append(paths, bashQuote(" "+c.path))
		}
	}
	fmt.Fprintf(&b, "      %s) at=\"$at ${words[i]}\" ;;\n    esac\n  done\n  case \"${words[CURRENT-1]}\" in\n", strings.Join(paths, "|"))
	for _, v := range valued(commands) {
		fmt.Fprintf(&b, "    %s) compadd -- %s; return ;;\n", v.text, strings.Join(v.values, " "))
	}
	b.WriteString("  esac\n  case \"$at\" in\n")
	for _, c := range commands {
		path := ""
		if c.path != "" {
			path = " " + c.path
		}
		fmt.Fprintf(&b, "    %s) offer=(", bashQuote(path))
		for _, x := range c.words {
			text := strings.ReplaceAll(x.text, ":", `\:`)
			if x.help != "" {
				text += ":" + x.help
			}
			b.WriteString("\n      " + bashQuote(text))
		}
		b.WriteString(") ;;\n")
	}
	b.WriteString("  esac\n  _describe slipway offer || _files\n}\n_slipway \"$@\"\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// fishCompletion writes one line for each word of each command.
func fishCompletion(w io.Writer, commands []command) error {
	var b strings.Builder
	b.WriteString("# fish completion of slipway\nfunction __slipway_at\n  set -l typed (string match -v -- '-*' (commandline -opc)[2..])\n  set -l want (string split -n ' ' -- $argv[1])\n" +
		"  set -l n (count $want)\n  if test $n -eq 0\n    test (count $typed) -eq 0\n    return\n  end\n  test (count $typed) -ge $n; and test \"$typed[1..$n]\" = \"$argv[1]\"\nend\n")
	for _, c := range commands {
		at := "-n " + bashQuote("__slipway_at "+bashQuote(c.path))
		for _, x := range c.words {
			line := "complete -c slipway " + at
			if name, isFlag := strings.CutPrefix(x.text, "--"); isFlag {
				line += " -l " + name
				if x.short != "" {
					line += " -s " + x.short[1:]
				}
				if len(x.values) > 0 {
					line += " -x -a " + bashQuote(strings.Join(x.values, " "))
				} else if x.takesValue {
					line += " -r"
				}
			} else {
				line += " -f -a " + x.text
			}
			if x.help != "" {
				line += " -d " + fishQuote(x.help)
			}
			b.WriteString(line + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// fishQuote quotes for fish, where a backslash escapes within single quotes.
func fishQuote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}
