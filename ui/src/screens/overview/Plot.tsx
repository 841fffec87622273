import 'uplot/dist/uPlot.min.css'
import { useEffect, useRef } from 'react'
import UPlot from 'uplot'

export interface Line {
  name: string
  values: number[]
}

// colours of the page as it is now, light or dark
const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()
const lines = [
  '--pf-t--chart--color--blue--300',
  '--pf-t--chart--color--orange--300',
  '--pf-t--chart--color--green--300',
]

// Plot draws lines over time. It is a picture: what it says stands in a table beside it.
export function Plot({ at, series, unit }: { at: number[]; series: Line[]; unit: (v: number) => string }) {
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const el = box.current
    if (!el) return
    let plot: UPlot | undefined
    const last = at.at(-1) ?? 0
    const draw = () => {
      plot?.destroy()
      const ink = colour('--pf-t--global--text--color--subtle') || '#777'
      const grid = colour('--pf-t--global--border--color--default') || '#ccc'
      const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } }
      plot = new UPlot(
        {
          width: Math.max(200, el.clientWidth),
          height: 160,
          legend: { show: false },
          cursor: { show: false },
          scales: {
            // A server that has just started has one sample: without this, the axis would be years long.
            x: { range: () => [last - 3600, last] },
            y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] },
          },
          axes: [axis, { ...axis, size: 70, values: (_, all) => all.map(unit) }],
          series: [
            {},
            ...series.map((s, i) => ({
              label: s.name,
              stroke: colour(lines[i] ?? '') || ['#0066cc', '#ca6c0f', '#3d7317'][i] || ink,
              width: 2,
              dash: i === 0 ? [] : i === 1 ? [6, 3] : [2, 3],
            })),
          ],
        },
        [at, ...series.map((s) => s.values)],
        el,
      )
    }
    draw()
    const resized = new ResizeObserver(() => plot?.setSize({ width: Math.max(200, el.clientWidth), height: 160 }))
    resized.observe(el)
    const recoloured = new MutationObserver(draw)
    recoloured.observe(document.documentElement, { attributeFilter: ['class'] })
    return () => {
      resized.disconnect()
      recoloured.disconnect()
      plot?.destroy()
    }
  }, [at, series, unit])
  return <div ref={box} aria-hidden />
}
