// isAgent reports whether an image is our agent: the server looks for it by its name, whatever system it was imported as.
export const isAgent = (i: { name: string }) => i.name === 'agent-x86-64' || i.name === 'agent-arm64'
