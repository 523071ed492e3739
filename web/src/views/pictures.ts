// Images and places of a resource. An image from elsewhere is fetched when someone asks for it, and not before: its host learns of it.

import { GeoMap } from "../answer/map.ts";
import { pointOf } from "../answer/places.ts";
import { button, h } from "../dom.ts";
import { isWeb, numberOf, type Term, visible } from "../rdf/term.ts";

const IMAGES = [
  "http://xmlns.com/foaf/0.1/depiction", "http://xmlns.com/foaf/0.1/img", "http://xmlns.com/foaf/0.1/thumbnail", "http://xmlns.com/foaf/0.1/logo", "http://schema.org/image", "https://schema.org/image",
  "http://schema.org/logo", "https://schema.org/logo", "http://dbpedia.org/ontology/thumbnail", "http://www.wikidata.org/prop/direct/P18", "http://www.wikidata.org/prop/direct/P154",
];
const LATITUDE = /[#/](?:lat|latitude)$/i;
const LONGITUDE = /[#/](?:long|lng|lon|longitude)$/i;
/** Images that are offered. */
const MOST = 4;

export class Pictures {
  readonly element = h("div", { class: "pictures" });
  private images = new Set<string>();
  private latitude: Term | undefined;
  private longitude: Term | undefined;
  private placed = false;

  /** Looks whether a value is an image or says where the resource is. */
  take(predicate: string, term: Term): void {
    if (term.type === "iri") {
      if (isWeb(term.value) && (IMAGES.includes(predicate) || /\.(?:jpe?g|png|gif|svg|webp)$/i.test(term.value))) this.offer(term.value);
      return;
    }
    if (this.placed) return;
    if (pointOf(term)) this.map([term], { point: 0 });
    else if (LATITUDE.test(predicate) && numberOf(term) !== undefined) this.latitude = term;
    else if (LONGITUDE.test(predicate) && numberOf(term) !== undefined) this.longitude = term;
    if (!this.placed && this.latitude && this.longitude) this.map([this.latitude, this.longitude], { latitude: 0, longitude: 1 });
  }

  private offer(address: string): void {
    if (this.images.size >= MOST || this.images.has(address)) return;
    this.images.add(address);
    const box = h("figure", { class: "image" });
    const host = new URL(address).host;
    box.append(button(`Show image from ${visible(host)}`, () => {
      const image = h("img", { attrs: { alt: "", referrerpolicy: "no-referrer", loading: "lazy" } });
      image.addEventListener("error", () => box.replaceChildren(h("p", { class: "soft" }, `The image at ${visible(host)} cannot be shown.`)));
      image.src = address;
      box.replaceChildren(image, h("figcaption", { class: "soft" }, visible(host)));
    }, { title: visible(address) }));
    this.element.append(box);
  }

  private map(row: Term[], where: { point: number } | { latitude: number; longitude: number }): void {
    this.placed = true;
    const box = h("details", { class: "place-map" }, h("summary", {}, "Where it is"));
    let drawn = false;
    const draw = () => {
      if (drawn || !box.open) return;
      drawn = true;
      const map = new GeoMap(() => {});
      box.append(map.element);
      map.show([row], where, 1);
    };
    box.addEventListener("toggle", draw);
    this.element.append(box);
    box.open = true;
  }
}
