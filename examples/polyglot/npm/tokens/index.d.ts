export declare const accent: string;
export declare const space: number;
