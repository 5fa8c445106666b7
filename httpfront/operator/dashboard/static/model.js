// What the page knows, put together from a snapshot and the deltas that follow it.

// meshKeys names the lists of a mesh that are told item by item, and the field by which
// an item is known. A room in detail has none.
export const meshKeys = {rooms: 'id', sites: 'site', nodes: 'node', limits: 'id'}

export class Model {
  constructor(keys) {
    this.keys = keys
    this.fields = {}
    this.lists = {}
    for (const name in keys) this.lists[name] = new Map()
  }

  // snapshot replaces everything.
  snapshot(all) {
    this.fields = {...all}
    for (const [name, key] of Object.entries(this.keys)) {
      delete this.fields[name]
      this.lists[name] = new Map((all[name] ?? []).map(item => [item[key], item]))
    }
  }

  // delta takes in what has changed. Items stay the same objects, and get other fields.
  delta({fields, lists}) {
    assign(this.fields, fields)
    for (const [name, {set = [], gone = []}] of Object.entries(lists)) {
      const list = this.lists[name], key = this.keys[name]
      for (const change of set) {
        const item = list.get(change[key])
        if (item) assign(item, change)
        else list.set(change[key], assign({}, change))
      }
      for (const id of gone) list.delete(id)
    }
  }

  // whole returns everything as a snapshot would have it, but for the order of lists.
  whole() {
    const all = {...this.fields}
    for (const name in this.lists) all[name] = [...this.lists[name].values()]
    return all
  }
}

// assign takes fields over; null is a field that is gone.
function assign(to, from) {
  for (const name in from) {
    if (from[name] === null) delete to[name]
    else to[name] = from[name]
  }
  return to
}
